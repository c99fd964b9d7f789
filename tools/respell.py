"""Rewrites IR text from the older spelling: facts of ops in discardable attributes, operands by number, former names.

    python tools/respell.py FILE...      rewrites files in place; without any, its input

In the new spelling such facts are properties, operands in superdsc are SSA values, and operators have other names.
Text in the new spelling stays as it is, and so do attributes that are still discardable, and superdsc in its generic
form.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

Entries = dict[str, str | None]


@dataclass(frozen=True)
class Rule:
    """The new spelling of an op.

    Attributes:
        op: a pattern of its name.
        moved: attributes that are properties, in the order of the new text, which drops `spyre.`.
        arguments: property that holds every other attribute without a dot in its name; empty if the op has none.
    """

    op: str
    moved: str
    arguments: str = ""


RULES = (
    Rule(r"aten\.\w+(?:\.\w+)*", "callee spyre.wide spyre.host", "arguments"),
    Rule(r"spyre\.(?:loop|kernel)\.host", "spyre.wide", "arguments"),
    Rule(r"spyre\.loop\.apply", "", "numbers"),
    Rule(r"spyre\.loop\.nest", "spyre.wide"),
    Rule(r"spyre\.loop\.gather", "from_end"),
    Rule(r"spyre\.kernel\.compute", "element integers op_info narrowed rounded"),
    Rule(r"spyre\.kernel\.to_device", "saturate zero_padding from_end segment"),
    Rule(r"spyre\.kernel\.(?:alloc|constant)", "segment"),
    Rule(r"spyre\.kernel\.launch", "integer_kernels elements pool_bytes"),
)
RENAMED = {'"spyre::whole_quotient"': '"spyre::floor_divide_integers"'}
KEYWORD = ("spyre.loop.nest", "spyre.loop.gather", "spyre.kernel.compute")  # attributes stand behind `attributes`
GOES_ON = re.compile(r"\s*(?://[^\n]*?)?\s*(?:ins|outs|into|reduce|attributes|->)\b|\s*->")
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[({\[<]|[)}\]>]|\battributes \{|\n|,')
LINKED = re.compile(
    r"(?<!= )superdsc\.allocate (?P<place>\d+) in\b"
    r"|(?<!= )superdsc\.labeled_ds (?P<operand>\d+) [^\n]*?scale \[[^\n\]]*\]"
    r"|(?P<head>superdsc\.compute [^\n\[({]*?)\[(?P<inputs>[\d, ]*)\] -> \[(?P<outputs>[\d, ]*)\]"
    r'(?: fields \{indices = \[(?P<indices>(?:"Tensor\d+-idx\d+"(?:, )?)*)\](?:, (?P<fields>)|\}))?'
    r"|superdsc\.dsc\b"
)
PATTERNS = [
    (re.compile(rf'(?<![\w."])(?:(?<!call )(?<!host )"(?P<generic>{r.op})"(?=\()|{r.op}(?=\([%)]| ))'), r)
    for r in RULES
]


def closed(text: str, start: int) -> int:
    """The end of the bracket that opens at `start`."""
    depth, at = 0, start
    while token := TOKEN.search(text, at):
        at = token.end()
        depth += (token[0][-1:] in "({[<") - (token[0] in ")}]>" and token[0] != "->")
        if depth == 0:
            return at
    return len(text)


def entries(text: str) -> Entries:
    """The entries of ``{a = 1, b}``."""
    found, at, first = Entries(), 1, 1
    while (token := TOKEN.search(text, at)) is not None:
        at = closed(text, token.start()) if token[0] in "({[<" else token.end()
        if token[0] in ",}":
            name, _, value = text[first : token.start()].partition("=")
            found |= {name.strip(): value.strip() or None} if name.strip() else {}
            first = at
    return found


def dictionary(found: Entries) -> str:
    """``{a = 1, b}``."""
    return "{" + ", ".join(name if value is None else f"{name} = {value}" for name, value in found.items()) + "}"


def attributes_at(text: str, start: int, keyword: bool, generic: bool) -> tuple[int, int] | None:
    """Where the attributes of the op at `start` are, with their keyword; None if it has none."""
    at = closed(text, start) if generic else start
    while token := TOKEN.search(text, at):
        at = token.end()
        if token[0] in ")}]>" or (token[0] == "\n" and not GOES_ON.match(text, at)):
            return None
        if token[0].startswith("attributes") or (token[0] == "{" and not keyword and text[at : at + 1] != "{"):
            return token.start(), closed(text, at - 1)
        if token[0][-1:] in "({[<":
            at = closed(text, token.start())
    return None


def sorted_out(rule: Rule, found: Entries) -> tuple[Entries, Entries, Entries]:
    """Arguments, other properties by their new names, and what stays discardable."""
    names = rule.moved.split()
    moved = {name.removeprefix("spyre."): found[name] for name in names if name in found}
    if moved.get("host") is not None:
        moved |= {"host": None, "reason": found["spyre.host"]}
    given = {n: v for n, v in found.items() if rule.arguments and n not in names and "." not in n}
    return given, moved, {n: v for n, v in found.items() if n not in names and n not in given}


def as_words(rule: Rule, found: Entries, before: str, keyword: bool) -> str:
    """The custom spelling of an op up to the end of its attributes, of which `before` is what stands before them."""
    given, moved, rest = sorted_out(rule, found)
    words = [dictionary(given)] if given else []
    for name, value in moved.items():
        short = value and re.sub(r"^(-?\d+) : i64$", r"\1", re.sub(r"^array<i64: (.*)>$", r"[\1]", value))
        words += ["because" if name == "reason" else name, *([] if short is None else [short])]
    words += [("attributes " if keyword or rule.arguments else "") + dictionary(rest)] if rest else []
    return before + " ".join(words) if words else before.rstrip(" ")


def as_properties(rule: Rule, found: Entries, before: str) -> str:
    """The generic spelling, likewise."""
    given, moved, rest = sorted_out(rule, found)
    first = {name: moved[name] for name in ("callee",) if name in moved}
    new = first | ({rule.arguments: dictionary(given)} if given else {}) | moved
    start = closed(before, 0)
    old = entries(before[start + 2 : closed(before, start + 2)]) if before.startswith(" <{", start) else {}
    behind = closed(before, start + 1) if old else start
    text = f"{before[:start]} <{dictionary(old | new)}>" if old or new else before[:start]
    return text + before[behind:].rstrip(" ") + (f" {dictionary(rest)}" if rest else "")


class Links:
    """The allocations and operands of a DSC, as `linked` meets them from its head on."""

    def __init__(self) -> None:
        self.places: dict[str, list[str]] = {}
        self.operands: dict[str, list[str]] = {}

    def __call__(self, match: re.Match[str]) -> str:
        """The new spelling of a place, an operand or an operation."""
        if (number := match["place"]) is not None:
            return f"{self.named(self.places, 'a', number)} = {match[0]}"
        if (number := match["operand"]) is not None:
            places = ", ".join(self.places.get(number, ()))
            return f"{self.named(self.operands, 't', number)} = {match[0]}" + (f" at {places}" if places else "")
        if match["head"] is None:  # the next DSC
            self.places, self.operands = {}, {}
            return match[0]
        texts = [match["inputs"], match["outputs"], match["indices"]]
        groups = [None if text is None else re.findall(r"\d+(?=,|\"|$)", text) for text in texts]
        if not all(number in self.operands for group in groups for number in group or ()):
            return match[0]
        inputs, outputs, indices = (
            None if group is None else ", ".join(self.operands[number][0] for number in group) for group in groups
        )
        words = f"{match['head']}({inputs}) -> ({outputs})"
        words += "" if indices is None else f" indices ({indices})"
        return words + (" fields {" if match["fields"] is not None else "")

    @staticmethod
    def named(known: dict[str, list[str]], letter: str, number: str) -> str:
        """A new value of an operand's number."""
        names = known.setdefault(number, [])
        names.append(f"%{letter}{number}" + (f"_{len(names)}" if names else ""))
        return names[-1]


def respelled(text: str) -> str:
    """Return IR text in the new spelling."""
    text = LINKED.sub(Links(), text)
    for former, name in RENAMED.items():
        text = text.replace(former, name)
    for pattern, rule in PATTERNS:
        for match in reversed(list(pattern.finditer(text))):
            generic, end, keyword = match["generic"] is not None, match.end(), match[0] in KEYWORD
            if (place := attributes_at(text, end, keyword, generic)) is None:
                continue
            found, before = entries(text[text.index("{", place[0]) : place[1]]), text[end : place[0]]
            new = as_properties(rule, found, before) if generic else as_words(rule, found, before, keyword)
            text = text[:end] + new + text[place[1] :]
    return text


def main() -> int:
    if not sys.argv[1:]:
        sys.stdout.write(respelled(sys.stdin.read()))
    for path in map(Path, sys.argv[1:]):
        path.write_text(respelled(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
