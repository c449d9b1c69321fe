"""The parts of commands' pages that `mcds __describe` makes: SYNOPSIS, and the first lists of OPTIONS, OUTPUT and EXIT STATUS."""
import re
import textwrap

# The verbs that have a page of their own.
OWN_PAGES = {"item-hot": ["hot"], "item-save": ["save", "load", "keep"], "ring-move": ["move"]}
# The fields that mcds(1) describes for all commands, as far as they mean the same there.
COMMON = ("key", "server", "index", "hash", "profile", "name", "found", "reason", "failed", "copies", "degraded", "dropped", "lost_or_dropped",
          "unfinished", "selection", "duration_s", "items_per_s")
NAMES = ("lock", "counter", "visitors", "eventlog", "array", "table", "hash", "cache")

# A verb with more has [options] in the synopsis.
FEW_OPTIONS = 5


def source(text):
    """A line for each sentence, or several if it is long."""
    text = text.replace("\\", "\\e").replace("--", "\\-\\-")
    lines = [line for sentence in re.split(r"(?<=\.) (?=[A-Z])", text)
             for line in textwrap.wrap(sentence, 120, break_on_hyphens=False, break_long_words=False)]
    return "".join(re.sub(r"^([.'])", r"\\&\1", line) + "\n" for line in lines)


def prose(text):
    return source(text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else "."))


def grouped(items, verbs):
    """[key] -> the verbs that have it, in parentheses; nothing if all have it. Keys of one name stand together."""
    found = {}
    for verb, key in items:
        found.setdefault(key, []).append(verb)
    names = list(dict.fromkeys(key[0] for key in found))
    for key in sorted(found, key=lambda key: names.index(key[0])):
        own = [verb for verb in found[key] if verb]
        yield key, "" if set(verbs) <= set(found[key]) or not own else f" Pq Ic {' , '.join(own)}"


def option(names, value):
    words = " , ".join("Fl " + name[1:] for name in names.split(","))
    return words + (f" {'Cm' if '|' in value else 'Ar'} {value.replace('|', ' | ')}" if value else "")


def synopsis(name, verbs):
    """As --help has it, with the options that a verb needs, and with all if they are few."""
    lines = []
    for verb in verbs:
        few = len(verb["options"]) <= FEW_OPTIONS
        lines += [f".Nm {name} {verb['name']}".rstrip(), *([] if few else [".Op Ar options"])]
        for one in verb["options"]:
            needed, text = one["help"].endswith("required"), option(one["names"].split(",")[0], one["value"])
            lines += [f".{text}" if needed else f".Op {text}"] if few or needed else []
        for one in verb["arguments"]:
            text = f"Ar {one['name']}" + (" ..." if one["many"] else "")
            lines += [] if one["name"] == "CMD" else [f".{text}" if one["required"] else f".Op {text}"]
        if verb["child"]:
            lines.append(".Fl - Ar CMD ..." if verb["child_required"] else ".Op Fl - Ar CMD ...")
    return "".join(line + "\n" for line in lines)


def options(verbs):
    """Before them the arguments of which there is more to say than what they are."""
    names = [verb["name"] for verb in verbs]
    words = [(verb["name"], (one["name"], one["help"])) for verb in verbs for one in verb["arguments"] if re.search(r";|\b- reads", one["help"])]
    items = [(verb["name"], (one["names"], one["value"], one["help"])) for verb in verbs for one in verb["options"]]
    return [*(f".It Ar {name}{of}\n{prose(text)}" for (name, text), of in grouped(words, names)),
            *(f".It {option(name, value)}{of}\n{prose(text)}" for (name, value, text), of in grouped(items, names))]


def fields(verbs, common):
    """Those of the verbs that mcds(1) does not describe."""
    items = [(verb["name"], (one["name"], one["meaning"])) for verb in verbs for one in verb["fields"]
             if one["name"] not in ("*", *NAMES) and common.get(one["name"]) != one["meaning"]]
    printing = [verb["name"] for verb in verbs if verb["fields"] and verb["name"] != "where"]
    return [f".It Li {name}{of}\n{prose(meaning)}" for (name, meaning), of in grouped(items, printing)]


def exits(command, usual):
    """Those that mcds(1) describes as well come last, in one entry."""
    own = [f".It {code}\n{source(meaning)}" for code, meaning in command["exits"].items() if meaning != usual[code]]
    rest = [code for code, meaning in command["exits"].items() if meaning == usual[code]]
    return [*own, f".It {' , '.join(rest)}\nas in mcds(1)\n"]


def meanings(description):
    """What most commands mean by a common field."""
    every = {(command["name"], one["name"], one["meaning"]) for command in description["commands"] for verb in command["verbs"] for one in verb["fields"]}
    said = {name: sorted(meaning for _, field, meaning in every if field == name) for name in COMMON}
    return {name: max(texts, key=texts.count) for name, texts in said.items()}


def with_section(text, heading, body):
    return re.sub(rf"(?ms)^(\.Sh {heading}\n).*?(?=^\.Sh )", lambda found: found[1] + body, text)


def with_list(page, text, heading, items, kind=""):
    """With these items in the first list of the section; a page may tell of exit codes in words."""
    if not items:
        return text
    body = f".Bl -tag -width Ds{kind}\n" + "".join(items) + ".El\n"
    text, count = re.subn(rf"(?ms)^(\.Sh {heading}\n(?:(?!\.S[hs] )[^\n]*\n)*?)\.Bl .*?^\.El\n", lambda found: found[1] + body, text)
    assert count == 1 or heading == "EXIT STATUS", f"{page}: no list in {heading}"
    return text


def written(page, text, description):
    """The page's text with its generated parts as the binary declares them."""
    common = meanings(description)
    usual = {str(code["code"]): code["meaning"] for code in description["exit_codes"]}
    if page == "man/mcds.1":
        return with_list(page, text, "OUTPUT", [f".It Li {name}\n{prose(meaning)}" for name, meaning in common.items()], " -compact")
    name = re.fullmatch(r"man/mcds-(.*)\.1", page)[1]
    command = next(one for one in description["commands"] if one["name"] == name.split("-")[0])
    elsewhere = [verb for page, own in OWN_PAGES.items() if page.startswith(command["name"] + "-") for verb in own]
    verbs = [verb for verb in command["verbs"] if verb["name"] in OWN_PAGES.get(name, []) or (name == command["name"] and verb["name"] not in elsewhere)]
    text = with_section(text, "SYNOPSIS", synopsis(f"mcds {command['name']}", verbs))
    text = with_list(page, text, "OPTIONS", options(verbs))
    text = with_list(page, text, "OUTPUT", fields(verbs, common), " -compact")
    return with_list(page, text, "EXIT STATUS", exits(command, usual), " -compact")
