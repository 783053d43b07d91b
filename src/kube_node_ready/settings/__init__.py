"""Settings: one engine (`engine`, `readers`), and a table of fields for each process (`worker`, `agent`, `controller`).

What was written, in a file, a variable or a flag, is read by a table. Each mistake is a diagnostic with its location,
and all of them are one error. `config` loads the controller's configuration.
"""
