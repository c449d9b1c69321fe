#!/usr/bin/env python3
"""run_golden.py --update: what it writes, and what it leaves alone. Usage: golden_update_test.py BUILD_DIR"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

BEFORE = """# a comment
$ echo one; echo two >&2; exit 3
$ printf 'a 1\\n7\\nnew\\n'
a <n>
gone
<n>
! never printed
? 4

# another comment
$ echo as it was
as <any> was
$ printf '%s\\n' \\
> 'at 2026-11-22T15:12:06.435Z'
$ printf '%s\\n' '{"lock":"a","pid":7,"list":[1,2],"new":"x","n":4,"at":"2026-11-22T15:12:06.435Z"}' '{"lock":"b","pid":8,"n":5}'
{"lock":"a","pid":<n>,"list":[<any>],"n":3,"at":"<any>"}
{"lock":"b","pid":"<any>","old":1,"n":<n>}
"""
AFTER = """# a comment
$ echo one; echo two >&2; exit 3
one
! two
? 3
$ printf 'a 1\\n7\\nnew\\n'
a <n>
<n>
new

# another comment
$ echo as it was
as <any> was
$ printf '%s\\n' \\
> 'at 2026-11-22T15:12:06.435Z'
at <time>
$ printf '%s\\n' '{"lock":"a","pid":7,"list":[1,2],"new":"x","n":4,"at":"2026-11-22T15:12:06.435Z"}' '{"lock":"b","pid":8,"n":5}'
{"lock":"a","pid":<n>,"list":[<any>],"new":"x","n":4,"at":"<any>"}
{"lock":"b","pid":8,"n":<n>}
"""
UNSAYABLE = "$ printf '\\n'\n"

def golden(path, *options):
    command = ["python3", "tests/cli/run_golden.py", *options, os.path.join(sys.argv[1], "tools", "mcds"), path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory(prefix="mcds-update-") as directory:
    path = os.path.join(directory, "a.golden")

    def content(text=None):
        with open(path, "r" if text is None else "w", encoding="utf-8") as file:
            return file.read() if text is None else file.write(text)

    content(BEFORE)
    check(golden(path).returncode == 1 and content() == BEFORE, "without --update the file stays as it is")
    updated = golden(path, "--update")
    check(updated.returncode == 0 and content() == AFTER, "what is printed is written")
    check("\n-gone\n" in updated.stdout and "\n+new\n" in updated.stdout, "the difference is shown")
    check(golden(path).returncode == 0, "the new file passes")
    check(golden(path, "--update").returncode == 0 and content() == AFTER, "a file that passes stays as it is")
    content(UNSAYABLE)
    refused = golden(path, "--update")
    check(refused.returncode == 1 and "cannot say" in refused.stdout, "an empty line cannot be expected, and that is said")
    check(content() == UNSAYABLE, "and nothing is written")
finish()
