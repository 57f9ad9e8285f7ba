"""Folders that may not be written to, for tests that run as the superuser as well."""

import os
import shutil

import pytest


def without_privilege(command):
    """The command, run such that file permissions hold for it, which the superuser is exempt from."""
    if os.geteuid():
        return command
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    return ["setpriv", "--bounding-set=-dac_override", *command]
