"""What leaves this repository: the container image with its bill of materials, and executables that need no checkout.

`python -m release --help`. The story, with figures, is docs/image.md.
"""
