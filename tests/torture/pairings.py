"""Which backends are tortured together. A new pairing is a line in the table."""

from servers import PostgresStore, RedisLocks, SqliteStore

# By name: what is chosen by a URL, and which server that is.
PAIRINGS = {
    "sqlite": {"SEKALI_URL": SqliteStore},
    "postgres": {"SEKALI_URL": PostgresStore},
    "sqlite+redis-locks": {"SEKALI_URL": SqliteStore, "SEKALI_LOCK_URL": RedisLocks},
    "postgres+redis-locks": {"SEKALI_URL": PostgresStore, "SEKALI_LOCK_URL": RedisLocks},
}


class Backends:
    """The servers of one pairing while they run."""

    def __init__(self, pairing, folder, log):
        self.by_variable = {}
        self.log = log
        for variable, server in PAIRINGS[pairing].items():
            self.by_variable[variable] = server(folder, log)

    @property
    def store(self):
        return self.by_variable["SEKALI_URL"]

    @property
    def servers(self):
        return list(self.by_variable.values())

    def environment(self, link=None):
        """The URLs for a program that goes through this link; without one: for the judge."""
        return {variable: server.url(link) for variable, server in self.by_variable.items()}

    def stop(self, keep):
        for server in self.servers:
            server.stop(keep)
