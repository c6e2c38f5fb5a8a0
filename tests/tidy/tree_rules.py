"""Rules about how files of the tree stand to each other: rooms, includes, build lists.

Each is a function from all sources to (path, line, message) triples.
"""

import re

# A room and the rooms that it may include besides itself: arrows point downwards only.
ROOMS = {
    "base": [],
    "engine": ["base"],
    "backends": ["base", "engine"],
    "process": ["base", "engine"],
    "observe": ["base", "engine", "backends"],
    "client": ["base", "engine", "backends", "observe", "process"],
    "bench": ["base", "engine", "backends", "observe", "process", "client"],
    "cli": ["base", "engine", "backends", "observe", "process", "client", "bench"],
}

# Folders of backends that hold what several backends share.
SHARED_BACKENDS = ["rows"]

# Public headers that adapt a third-party library, by the prefix of what they may include.
ADAPTERS = {"include/sekali/json.hpp": "<nlohmann/"}

# Libraries whose headers are slow to compile or change with macros: one file includes each.
ONE_FILE_ONLY = ["<CLI/", "<httplib.h>", "<toml++/"]


def room_of(path):
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None


def backend_of(parts):
    """The backend's own folder, for src/backends/NAME/… and for "backends/NAME/…"."""
    index = parts.index("backends") if "backends" in parts else len(parts)
    return parts[index + 1] if len(parts) > index + 2 else None


def include_direction(sources):
    for source in sources:
        room = room_of(source.path)
        for line, name in source.includes:
            parts = name.strip('"').split("/")
            target = parts[0]
            if not name.startswith('"') or target not in ROOMS:
                continue
            if source.path.parts[0] == "include":
                yield source.path, line, f"a public header may not include {name} of a room"
            elif room in ROOMS and target != room and target not in ROOMS[room]:
                yield source.path, line, f"{room} may not include {name}: arrows point downwards"
            elif room == "backends" and target == room:
                other = backend_of(parts)
                if other not in [None, *SHARED_BACKENDS, backend_of(source.path.parts)]:
                    yield source.path, line, f"a backend may not include {name} of another"


def unknown_rooms(sources):
    for source in sources:
        room = room_of(source.path)
        if source.is_cpp and room is not None and room not in ROOMS:
            yield source.path, 1, f"room {room} is not in the table of tests/tidy/tree_rules.py"


def public_includes(sources):
    for source in sources:
        if source.path.parts[0] != "include":
            continue
        adapted = ADAPTERS.get(str(source.path))
        for line, name in source.includes:
            is_own = name.startswith('"sekali/')
            is_standard = re.fullmatch(r"<[a-z_0-9]+>", name)
            if not (is_own or is_standard or (adapted and name.startswith(adapted))):
                yield source.path, line, f"a public header may not include {name}"


def single_includers(sources):
    for library in ONE_FILE_ONLY:
        includers = [
            (source.path, line)
            for source in sources
            if not source.is_test
            for line, name in source.includes
            if name.startswith(library)
        ]
        for path, line in includers[1:]:
            yield path, line, f"{library.strip('<>')} is already included by {includers[0][0]}"


def unlisted_sources(sources):
    lists = {s.path.parent: s.text for s in sources if s.path.name == "CMakeLists.txt"}
    for source in sources:
        if source.path.suffix != ".cpp":
            continue
        for folder in source.path.parents:
            name = re.escape(str(source.path.relative_to(folder)))
            if re.search(rf"(?<![\w./-]){name}(?![\w.-])", lists.get(folder, "")):
                break
        else:
            yield source.path, 1, "no CMakeLists.txt lists this file"


def unused_headers(sources):
    included = set()
    for source in sources:
        for _, name in source.includes:
            included |= {source.path.parent / name.strip('"'), name.strip('"')}
    for source in sources:
        path = source.path
        if path.suffix == ".hpp" and path.parts[0] != "include":
            if path not in included and "/".join(path.parts[1:]) not in included:
                yield path, 1, "nothing includes this header"


RULES = [
    include_direction,
    unknown_rooms,
    public_includes,
    single_includers,
    unlisted_sources,
    unused_headers,
]
