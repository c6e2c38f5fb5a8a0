#!/usr/bin/env python3
"""examples/own_layer: what a layer on libpq writes and the success of its job are one commit.

usage: own_layer.py PROGRAMS
"""

import json
import pathlib
import sys

from stage import PATIENCE_S, Stage, Violation

JOBS = 300
MOVES = [{"item": f"item-{n % 5}", "count": n} for n in range(JOBS)]
# The first is refused by the statement, the second only by the commit.
REFUSED = {"stock_count_check": {"item": "item-0", "count": -1_000_000},
           "stock_is_known": {"item": "what", "count": 1}}


def main():
    with Stage(pathlib.Path(sys.argv[1]), "own-layer") as stage:
        stage.run("sekali", "migrate")
        stage.run("own_layer", "prepare", stage.url)
        stage.rows("create table known(item text primary key)")
        stage.rows("insert into known select 'item-' || n from generate_series(0, 4) n")
        stage.rows("alter table stock add constraint stock_is_known foreign key (item) "
                   "references known deferrable initially deferred")
        lines = stage.folder / "jobs.jsonl"
        lines.write_text("".join(
            json.dumps({"kind": "stock.move", "payload": move, "max_attempts": 1}) + "\n"
            for move in [*MOVES, *REFUSED.values()]))
        stage.run("sekali", "enqueue", "--bulk", str(lines))
        worker = stage.start("own_layer", "--drain", "--concurrency", "16", "--log-level", "error")
        if worker.wait(PATIENCE_S) != 0:
            raise Violation(f"the worker ended with {worker.returncode}; see {stage.folder}/log")
        states = dict(stage.rows("select state, count(*) from sekali.sekali_v_jobs group by 1"))
        stock = {item: int(count) for item, count in stage.rows("select item, count from stock")}
        wanted = {f"item-{n}": sum(range(n, JOBS, 5)) for n in range(5)}
        if states != {"succeeded": str(JOBS), "dead": str(len(REFUSED))} or stock != wanted:
            raise Violation(f"{states}, {stock} instead of {wanted}; see {stage.folder}")
        for constraint in REFUSED:
            if stage.number("select count(*) from sekali.sekali_v_jobs where state = 'dead' "
                            f"and error like '%{constraint}%'") != 1:
                raise Violation(f"no dead job speaks of {constraint}; see {stage.folder}")
    print(f"{JOBS} moves, {len(REFUSED)} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
