"""What `make dist` has built: a wheel and an sdist with every file that belongs there, and no other.

python tests/distribution.py dist
"""

import email
import pathlib
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
INSIDE = {"pohp_neurd": "pohp_neurd", "games": "pohp_neurd/games", "run_scripts": "pohp_neurd/run_scripts"}


def wanted():
    """The files of the package in the repo, each with its place in a wheel."""
    listed = subprocess.run(
        ["git", "ls-files", *INSIDE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {file: f"{INSIDE[file.split('/')[0]]}/{file.split('/', 1)[1]}" for file in listed}


def check(folder):
    """Raises a ValueError for the first thing that is wrong with the files in `folder`."""
    (wheel,), (sdist,) = (sorted(pathlib.Path(folder).glob(f"*{end}")) for end in (".whl", ".tar.gz"))
    files = wanted()
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(about))
        entries = archive.read(about.replace("METADATA", "entry_points.txt")).decode()
    _same("the wheel", names, set(files.values()))
    with tarfile.open(sdist) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    _same("the sdist", {name for name in held if name.split("/")[0] in INSIDE and "." in name}, set(files))
    version = subprocess.run(
        [sys.executable, "-c", "import pohp_neurd; print(pohp_neurd.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for name, expected in (
        ("Name", "pohp_neurd"),
        ("Version", version),
        ("License-Expression", "Apache-2.0"),
        ("Description-Content-Type", "text/markdown"),
    ):
        if metadata[name] != expected:
            raise ValueError(f"{name} must be {expected}, but is {metadata[name]}.")
    if metadata.get_payload(decode=True).decode().strip() != (ROOT / "README.md").read_text("utf-8").strip():
        raise ValueError("the long description is not README.md.")
    if "pohp-neurd = pohp_neurd.__main__:main" not in entries:
        raise ValueError("the wheel has no command pohp-neurd.")
    return wheel, sdist


def _same(what, found, expected):
    for name in sorted(found ^ expected):
        raise ValueError(f"{what} {'lacks' if name in expected else 'must not hold'} {name}.")


if __name__ == "__main__":
    for path in check(sys.argv[1]):
        print(f"{path}: {path.stat().st_size:,} bytes")
