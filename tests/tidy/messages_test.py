#!/usr/bin/env python3
"""Error and warning messages follow one pattern. Usage: messages_test.py [BUILD_DIR] | messages_test.py --list

--list prints each message, and each part of one; {} stands for text put in at run time, | between alternatives."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\n *#[^\n]*|(?P<raw>R"(\w*)\(.*?\)\2")|"(?P<text>(?:[^"\\\n]|\\.)*)"|'
                   r"(?P<letter>(?<!\w)'(?:[^'\\]|\\.)+')|(?P<name>[A-Za-z_][\w:]*)|(?P<sign>\S)", re.S)
# Other texts: descriptions for help and pages, what a terminal shows, requests to servers, and the tables in these files.
DESCRIPTIONS = set("""example field answer exits JsonObject static_assert option flag verb argument optional_argument choice add declare
    declare_fetch of_ring with text_at starts_with ends_with has find if offer push_back printed_command printed_command_on
    MCDS_DLOPEN_NOTE show_progress doctor_lines line hide ask bio_meth_new require std::fputs __nss_configure_lookup add_prompt Waiting waiting bytes append_all raw append file""".split())
TABLES = re.compile(r"common/operations/doctor/|common/placement/profiles/(?!profiles.cpp)|common/values/formats|common/cluster/(?:wire/encode|keys/live)|"
                    r"tools/cli/(?:synonyms|settings|fields|text_table|help|complete|describe|exit_status|cell_text|batch|progress|options)\.|"
                    r"tools/commands/(?:commands|ring/svg|servers/metrics|servers/every|doctor/doctor)\.")
SPLICED, QUOTING = {"", "std::string", "std::string_view"}, {"json_quote", "quote_bytes"}
ANYWHERE = {
    r'["`]': "quote names as 'NAME'", r"\.$": "end without a full stop",
    r"\bnot (?:both|several)\b|exclude each other|(?:given|used|go|belong) together|mutually|give (?:only )?one of --|give either --": "write: A and B cannot be combined",
    r"\b(?:perhaps|relied upon|told|heard|said|vouch|whoever|anew|in vain|in doubt|by itself|for so long|so many|such an?|somebody|nobody|everybody|"
    r"kept in|created in|another number|something else|looks at|united?|begun again|all the time|went|behind it)\b|\bis none\b|\bis no (?:key|number|whole|JSON|counter|lock|duration|size|time|list|file)\b|, for (?:the|its)\b": "use the common word",
}
AT_BEGIN = {r"(?:it|its|this|that|these|they|here|there)\b": "name the subject", r"[A-Z][a-z]+ (?!of |does)": "begin with a small letter"}


def texts(source):
    """Yields (line, function, text) for each argument, statement or initializer with a literal of several words."""
    frames, line, name, position = [["", 1, ""]], 1, "", 0
    for token in TOKEN.finditer(source):
        line, position = line + source.count("\n", position, token.start()), token.start()
        kind, word, frame = token.lastgroup, token[0], frames[-1]
        if kind in ("text", "letter"):
            frame[1:] = frame[1] if re.search(r"\w", frame[2]) else line, frame[2] + word[1:-1].replace('\\"', '"')
        elif kind == "sign" and word in "({[":
            frames.append([name if word == "(" else "", line, ""])
        elif kind == "sign" and word in ")}],;":
            if word in ")}]" and len(frames) > 1:
                frames.pop()
            if frame is not frames[-1] and word == ")" and frame[0] in SPLICED:
                outer = frames[-1]
                outer[1:] = outer[1] if re.search(r"\w", outer[2]) else frame[1], outer[2] + frame[2]
            elif re.search(r"[a-z,;'.] [a-z{'-]", frame[2]) and not DESCRIPTIONS & {outer[0] for outer in [*frames, frame]}:
                yield frame[1], frame[0], frame[2]
            if frame is not frames[-1] and frame[0] in QUOTING:
                frames[-1][2] += '"{}"'
            frame[2] = ""
        elif kind == "sign" and word in "?:":
            frame[2] = frame[2].removesuffix("{}") + "|"
        elif word in ("=", "return"):
            frame[2] = ""
        elif kind in ("name", "sign") and word not in SPLICED | QUOTING | {"+", "throw"} and not frame[2].endswith("{}"):
            frame[2] += "{}"
        name = word if kind == "name" else ""


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    for path in sorted(glob.glob("common/**/*.?pp", recursive=True) + glob.glob("tools/**/*.?pp", recursive=True)):
        with open(path, encoding="utf-8") as file:
            found = [] if TABLES.match(path) else list(texts(file.read()))
        for line, function, text in found:
            wrong = {rule for pattern, rule in ANYWHERE.items() if re.search(pattern, text)}
            wrong |= {rule for pattern, rule in AT_BEGIN.items() if re.search(r"(?:^(?:: )?|\|)" + pattern, text)}
            if "--list" in sys.argv:
                print(f"{path}:{line}: {function}: {text}")
            else:
                check(not wrong, f"{path}:{line}: {text!r}: {'; '.join(sorted(wrong))}")
    if "--list" not in sys.argv:
        finish()


if __name__ == "__main__":
    main()
