"""Runs docs/tutorial.ipynb from top to bottom and writes its outputs back: `python tests/tutorial.py`."""

import pathlib

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"


def executed():
    """The notebook with the outputs of now; what a cell raises is raised, and what it warns of is kept."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = {"metadata": {"path": NOTEBOOK.parent}}
    options = {"timeout": 600, "record_timing": False, "coalesce_streams": True, "resources": folder}
    return nbclient.NotebookClient(notebook, **options).execute()


def printed(cell):
    """What a cell has printed."""
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


if __name__ == "__main__":
    notebook = executed()
    notebook.metadata["language_info"] = {"name": "python"}  # which Python it was is of no account
    nbformat.write(notebook, NOTEBOOK)
