"""Write the pages that list what the code has: `make docs`."""
