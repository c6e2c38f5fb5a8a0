#!/usr/bin/env python3
"""No package that scripts/install-deps names is a service, by its name and by what it holds.

PostgreSQL is the one exception: install-deps lets it make no cluster and disables it.
"""

import pathlib
import re
import subprocess
import sys

INSTALL_DEPS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install-deps"
SETS = ["build", "test", "lint", "lint-deep", "sanitize", "ci"]
SERVICE_NAME = re.compile(
    r".*-(server|sentinel|daemon)$|(redis|valkey|nginx|apache2|haproxy|pgbouncer)$"
    r"|postgresql(-\d+|-all)?$|(mariadb|mysql|rabbitmq).*"
)
KEPT_OFF = {"postgresql": ["create_main_cluster = false", "disable postgresql"]}
SERVICE_FILE = re.compile(r"/systemd/system/.+\.(service|socket|timer)$|^/etc/init\.d/.+")


def held_service_files(package: str) -> list[str]:
    listing = subprocess.run(
        ["dpkg-query", "-L", package], capture_output=True, text=True, check=False
    )
    return [line for line in listing.stdout.splitlines() if SERVICE_FILE.search(line)]


def main() -> int:
    listing = subprocess.run(
        [INSTALL_DEPS, "--list", *SETS], capture_output=True, text=True, check=True
    )
    packages = listing.stdout.split()
    text = INSTALL_DEPS.read_text()
    kept_off = [
        name for name in KEPT_OFF if name in packages and all(how in text for how in KEPT_OFF[name])
    ]
    complaints = [
        f"{name} is a service"
        for name in packages
        if SERVICE_NAME.match(name) and name not in kept_off
    ]
    for name in packages:
        complaints += [f"{name} holds {file}" for file in held_service_files(name)]
    if not packages:
        complaints.append("install-deps lists no packages")
    for complaint in complaints:
        print(f"fresh-services: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
