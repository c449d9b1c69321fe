"""What test scripts count and how they end: with a line `N passed, N failed` and, if any failed, status 1."""
import sys

failures = []
_passed = 0


def check(ok, message):
    global _passed
    if ok:
        _passed += 1
    else:
        failures.append(message)


def finish(most=1000):
    for failure in failures[:most]:
        print(failure)
    print(f"{_passed} passed, {len(failures)} failed")
    sys.exit(bool(failures))
