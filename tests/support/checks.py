"""What test scripts count and how they end: with a line `N passed, N failed` and, if any failed, status 1."""
import os
import sys
import tempfile
import traceback

FULL = os.environ.get("MCDS_TEST_FULL", "") not in ("", "0")  # many more tries, as `tests/run --full` asks
failures = []
_passed = 0


def check(ok, message):
    global _passed
    assert isinstance(message, str), f"what is checked comes first: {message}"
    if ok:
        _passed += 1
    else:
        failures.append(message)


def finish(most=1000):
    for failure in failures[:most]:
        print(failure)
    print(f"{_passed} passed, {len(failures)} failed")
    sys.exit(bool(failures))


cases = []


def tested(function):
    cases.append(function)
    return function


def passes(case, world):
    """Whether the case raises nothing in a world of its own, made of a fresh directory; what it returns is printed."""
    with tempfile.TemporaryDirectory(prefix="mcds-test-") as directory:
        place = world(directory)
        try:
            if note := case(place):
                print(f"{case.__name__}: {note}", flush=True)
            return True
        except Exception:  # pylint: disable=broad-except
            print(f"{case.__name__}:\n{traceback.format_exc()}", flush=True)
            return False
        finally:
            place.end()
