"""What a run survived, as a page for people and as JSON."""

import json

CAPTIONS = {
    "asked for": "jobs asked for", "accepted": "accepted", "maybe": "without an answer",
    "refused": "refused, not applied", "suppressed by a unique key": "suppressed by a unique key",
    "jobs": "jobs in the store, receipts too", "commits": "commits with effects",
    "runs begun": "runs begun", "deliveries beyond the first": "deliveries beyond the first",
    "outside calls": "calls outside", "outside effects": "effects outside",
    "overlaps of stale runs": "stale runs that met their heir, none committed",
    "restarts": "starts of worker fleets",
    "drained in s": "seconds until all was done after healing",
    "lost": "**lost**", "double": "**double**", "violations": "**violations**",
}


def shown(counts):
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def row_of(result):
    figures = result["figures"]
    faults = result["faults"]

    def total(*words):
        return sum(count for name, count in faults.items() if any(w in name for w in words))

    return [result["pairing"], f"{result['seconds'] / 60:.0f}", figures.get("accepted", "–"),
            total("kill"), total("stop"), total("delay", "hole", "reset", "mute", "split"),
            total("crash", "flush"), total("disk full"),
            figures.get("deliveries beyond the first", "–"),
            figures.get("lost", "–"), figures.get("double", "–"), len(result["violations"])]


COLUMNS = ["pairing", "minutes", "accepted jobs", "kills", "stops", "cuts", "server crashes",
           "disk full", "redeliveries", "lost", "double", "violations"]


def table(results):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row_of(result)) + " |" for result in results]
    return "\n".join(lines)


def page(results):
    parts = ["# Torture report", "", table(results)]
    for result in results:
        figures = {**result["figures"], "violations": len(result["violations"])}
        parts += ["", f"## {result['pairing']}, seed {result['seed']}", "",
                  f"`{result['command']}`", ""]
        parts += [f"- {caption}: {figures[name]}" for name, caption in CAPTIONS.items()
                  if name in figures]
        parts += [f"- states: {shown(figures.get('states', {}))}",
                  f"- events: {shown(figures.get('events', {}))}",
                  f"- faults: {shown(result['faults'])}"]
        parts += [f"- {line}" for line in result["skipped"]]
        parts += [f"- VIOLATION {line}" for line in result["violations"]]
    return "\n".join(parts) + "\n"


def write(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(results))
    path.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
