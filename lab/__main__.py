import sys

try:
    from lab.cli import main
except KeyboardInterrupt:
    sys.exit(130)

main()
