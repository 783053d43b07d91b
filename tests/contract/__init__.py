"""What users depend on: names, keys, types, defaults and codes, compared with the golden files in golden/.

A collector is a function that returns facts: what a user can name, and what it is. It gets them as a user does, from
programs, pages and objects in the cluster, and imports nothing from src/: modules can be moved and renamed, and the
facts stay. Wording is not part of the contract.

`make contract` rewrites the golden files. A change of theirs belongs in CHANGELOG.md and docs/how-to/upgrading.md.
"""
