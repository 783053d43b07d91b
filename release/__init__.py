"""Release artifacts: the container image with its bill of materials, and standalone executables.

`python -m release --help`. The story, with figures, is docs/how-to/image.md.
"""
