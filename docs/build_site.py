"""Builds the static site: the guides, the tutorial, and the reference of every public name.

    python docs/build_site.py build/docs

The site has the layout of the repo. It begins with docs/README.md and has whatever can be reached from there:
Markdown and notebooks as pages, other files as they are. Ends with exit code 1 if a link leads nowhere.
"""

import html
import html.parser
import os
import pathlib
import pkgutil
import re
import shutil
import string
import sys
import urllib.parse
import warnings

import markdown2
import nbformat
import pdoc
import pdoc.render

import pohp_neurd

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
_START = pathlib.Path("docs/README.md")
_EXTRAS = ["tables", "fenced-code-blocks", "header-ids", "cuddled-lists"]


def page_of(source: pathlib.Path) -> pathlib.Path:
    """Where a file of the repo stands in the site; both are relative to their roots."""
    if source == _START:
        return pathlib.Path("index.html")
    return source.with_suffix(".html") if source.suffix in (".md", ".ipynb") else source


def build_guides(site: pathlib.Path) -> None:
    """Writes a page of each guide, and what it leads to."""
    waiting, known = [_START], {_START}
    while waiting:
        source = waiting.pop()
        target = site / page_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source == page_of(source):
            shutil.copyfile(ROOT / source, target)
            continue
        body, linked = _relinked(source, _body(ROOT / source))
        waiting += sorted(linked - known)
        known |= linked
        template = string.Template((HERE / "templates" / "page.html").read_text("utf-8"))
        root = "../" * (len(page_of(source).parts) - 1)
        target.write_text(template.substitute(title=f"{source} · pohp_neurd", root=root, body=body), "utf-8")


def _body(path: pathlib.Path) -> str:
    if path.suffix == ".md":
        return _markdown(path.read_text("utf-8"))
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(_markdown(cell.source))
            continue
        parts.append(_markdown(f"```python\n{cell.source}\n```"))
        for output in cell.outputs:
            if output.output_type == "stream":
                parts.append(f'<pre class="output">{html.escape(output.text)}</pre>')
            elif "image/png" in output.get("data", {}):
                parts.append(f'<img alt="figure" src="data:image/png;base64,{output.data["image/png"]}">')
    return "\n".join(parts)


def _markdown(text: str) -> str:
    return str(markdown2.markdown(text, extras=_EXTRAS))


def _relinked(source: pathlib.Path, body: str) -> tuple[str, set[pathlib.Path]]:
    """The body with links into the site, and the files of the repo that they lead to."""
    linked = set()

    def into_site(found: re.Match[str]) -> str:
        path, _, fragment = found[2].partition("#")
        if not path or urllib.parse.urlsplit(path).scheme:
            return found[0]
        file = pathlib.Path(os.path.normpath(source.parent / path))
        if (ROOT / file).is_dir():
            file = file / "README.md"
        if not (ROOT / file).is_file():
            return found[0]  # which the check of links tells of
        linked.add(file)
        there = os.path.relpath(page_of(file), page_of(source).parent)
        return f'{found[1]}="{there}{"#" + fragment if fragment else ""}"'

    return re.sub(r'\b(href|src)="([^"]*)"', into_site, body), linked


def build_reference(site: pathlib.Path) -> None:
    """Writes a page of each module; scripts are left out, as they define flags and have --help."""
    for module in pkgutil.walk_packages(pohp_neurd.__path__, "pohp_neurd."):
        if ".run_scripts" not in module.name and "__main__" not in module.name:
            _load(module.name)
    pdoc.render.configure(docformat="google", show_source=False, template_directory=HERE / "templates")
    with warnings.catch_warnings():
        # Names that stand in quotes, of types that are defined further down or in other packages.
        warnings.filterwarnings("ignore", "Error parsing type annotation .*'(Lane|ArrayTree)'", UserWarning)
        hidden = ("!pohp_neurd.run_scripts", "!pohp_neurd.__main__")
        pdoc.pdoc("pohp_neurd", *hidden, output_directory=site / "api")


def _load(name: str) -> None:
    """Names that load on first use are not yet in their module, which is where pdoc looks for them."""
    module = __import__(name, fromlist=["_"])
    for each in getattr(module, "__all__", ()):
        setattr(module, each, getattr(module, each))


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def broken_links(site: pathlib.Path) -> list[str]:
    """A sentence for each relative link that leads nowhere, to a file or to a place in a page.

    Places within one page of the reference are pdoc's: it also links what a class inherits and does not say.
    """
    pages = {}
    for page in site.rglob("*.html"):
        pages[page] = _Links()
        pages[page].feed(page.read_text("utf-8"))
    broken = []
    for page, found in pages.items():
        for target in found.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = urllib.parse.unquote(parts.path)
            file = pathlib.Path(os.path.normpath(page.parent / path)) if path else page
            its_own = site / "api" in page.parents and file == page
            places = pages[file].places if file in pages and not its_own else {parts.fragment}
            if not file.is_file() or (parts.fragment and parts.fragment not in places):
                broken.append(f"{page.relative_to(site)} leads to {target}, which is not there.")
    return broken


def main(site: pathlib.Path) -> None:
    """Builds the site and checks its links."""
    print("Building the guides and the reference: half a minute, most of it to load the package.", flush=True)
    shutil.rmtree(site, ignore_errors=True)
    build_reference(site)
    build_guides(site)
    broken = broken_links(site)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages: open {site / 'index.html'} in a browser.")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
