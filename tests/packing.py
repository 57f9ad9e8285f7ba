"""Arrays and texts as pages hold them, read back."""

import base64
import json
import zlib

import numpy as np


def unpacked(array):
    """The array, or the texts."""
    content = zlib.decompress(base64.b64decode(array["zlib"]))
    if "dtype" not in array:
        return json.loads(content)
    return np.frombuffer(content, array["dtype"]).reshape(array["shape"])
