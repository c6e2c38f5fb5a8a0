"""C++ sources as the rules need them: comments and literals blanked, cut into functions."""

import dataclasses
import functools
import pathlib
import re

LITERAL_OR_COMMENT = re.compile(
    r"""
    //[^\n]*
    | /\*.*?\*/
    | (?<![0-9A-Za-z_])(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'
    """,
    re.DOTALL | re.VERBOSE,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ACCESS_LABEL = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")')


def spaces(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def blanked(match: re.Match) -> str:
    text = match.group()
    if text.startswith(("//", "/*")):
        return spaces(match)
    return '"' + re.sub(r"[^\n]", "_", text[1:-1]) + '"'


@dataclasses.dataclass(frozen=True)
class Source:
    """One file of the tree."""

    path: pathlib.PurePosixPath  # from the top of the tree
    text: str

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @functools.cached_property
    def code(self) -> str:
        """The text without comments and literals; every line and column stays where it is."""
        return LITERAL_OR_COMMENT.sub(blanked, self.text)

    @functools.cached_property
    def includes(self) -> list[tuple[int, str]]:
        """(line number, the name with its quotes or angle brackets)."""
        found = ((number, INCLUDE.match(line)) for number, line in enumerate(self.lines, 1))
        return [(number, match.group(1)) for number, match in found if match]

    @property
    def is_cpp(self) -> bool:
        return self.path.suffix in (".cpp", ".hpp")

    @property
    def is_test(self) -> bool:
        return self.path.parts[0] == "tests"


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int  # where its head begins
    length: int  # lines from there to the closing brace


TEMPLATE_HEAD = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
SCOPE_HEAD = re.compile(
    r'(?:inline\s+)?namespace\b|extern\s+"_*"$'
    r"|(?:\[\[.*?\]\]\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b[^()=]*$"
)
FUNCTION_HEAD = re.compile(
    r"\)\s*(?:const\b|noexcept\b(?:\s*\([^()]*\))?|override\b|final\b|mutable\b|try\b|&&?|\s)*"
    r"(?:->[^;={}]+|requires\b.+)?$",
    re.DOTALL,
)
CONSTRUCTOR_HEAD = re.compile(r"\)[^()]*[^:]:[^:]", re.DOTALL)


def kind_of(head: str) -> str:
    """What a brace after `head` opens: a "scope", a "function" or a "value"."""
    head = TEMPLATE_HEAD.sub("", head).strip()
    if SCOPE_HEAD.match(head):
        return "scope"
    if CONSTRUCTOR_HEAD.search(head):
        # members are set by name(…) or name{…}; the body is what follows one of those
        return "function" if head.endswith((")", "}")) else "value"
    return "function" if FUNCTION_HEAD.search(head) else "value"


def name_of(head: str) -> str:
    match = re.search(r"([~\w:]+|operator\s*[^\s(]+)\s*\(", TEMPLATE_HEAD.sub("", head))
    return match.group(1) if match else "unnamed"


def functions(source: Source) -> list[Function]:
    """Every function with a body; a lambda or a local class counts with the function it is in."""
    code = ACCESS_LABEL.sub(spaces, DIRECTIVE.sub(spaces, source.code))
    found = []
    opened: list[tuple[str, str, int]] = []  # kind, head and its position for each open brace
    head, begin = "", 0
    for match in re.finditer(r"([^{};]*)([{};])", code):
        text, mark = match.groups()
        outside = all(kind == "scope" for kind, _, _ in opened)
        if outside:
            if not head:
                begin = match.start() + len(text) - len(text.lstrip())
            head = (head + text).lstrip()
        if mark == "{":
            kind = kind_of(head) if outside else "value"
            opened.append((kind, head, begin))
            head = head if kind == "value" else ""
        elif mark == "}" and opened:
            kind, opening, start = opened.pop()
            if kind == "function":
                length = code.count("\n", start, match.end()) + 1
                found.append(Function(name_of(opening), code.count("\n", 0, start) + 1, length))
            head = head + "{}" if kind == "value" else ""
        elif outside:
            head = ""
    return found
