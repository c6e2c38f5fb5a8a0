"""A PostgreSQL server of its own and processes that work on it, in a folder of their own."""

import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 600


class Violation(Exception):
    """Something that sekali promises was not so."""


class Stage:
    def __init__(self, programs, name):
        self.programs = pathlib.Path(programs)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"sekali-{name}-"))
        self.folder.chmod(0o755)
        self.processes = []
        self.server("start", "--while", str(os.getpid()), "--durable")
        self.url = (self.folder / "server" / "url").read_text()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.close()
        if kind is None:
            shutil.rmtree(self.folder)

    def close(self):
        self.server("stop")

    def server(self, action, *words, folder="server"):
        subprocess.run([HERE / "server.py", action, self.folder / folder, *words], check=True)

    def environment(self):
        own = {k: v for k, v in os.environ.items() if not k.startswith("SEKALI_")}
        return {**own, "SEKALI_URL": self.url}

    def run(self, program, *words):
        done = subprocess.run([self.programs / program, *words], env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise Violation(f"{program} {' '.join(words)}: {done.returncode}: {done.stderr}")
        return done.stdout

    def start(self, program, *words, stdin=subprocess.DEVNULL, stdout=None):
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen([self.programs / program, *words],
                                       env=self.environment(), stdin=stdin, stdout=stdout or log,
                                       stderr=log)
        self.processes.append(process)
        return process

    def rows(self, question):
        """None while the server does not answer."""
        done = subprocess.run(["psql", "-XAtq", "-F", "\t", self.url, "-c", question],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        return [line.split("\t") for line in done.stdout.splitlines()]

    def number(self, question):
        rows = self.rows(question)
        return int(rows[0][0]) if rows else None
