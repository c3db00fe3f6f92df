"""A PostgreSQL server for as long as a block lasts, as tests/support/postgres.c starts them."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import script


def program(name):
    """Debian keeps the server's programs out of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    path = found[-1] if found else shutil.which(name)
    if not path:
        raise script.Skip("PostgreSQL is not installed")
    return path


def server_user():
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        user = server_user()
        if user:
            shutil.chown(self.path, user)
        self.log = open(self.path / "log", "w+", encoding="utf-8")
        common = {"user": user, "extra_groups": [] if user else None, "cwd": self.path, "stdout": self.log,
                  "stderr": subprocess.STDOUT}
        subprocess.run([program("initdb"), "-D", "data", "--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "quire"],
                       check=True, **common)
        self.process = subprocess.Popen(
            [program("postgres"), "-D", "data", "-c", "listen_addresses=", "-c", f"unix_socket_directories={self.path}", "-c",
             "fsync=off", "-c", "shared_buffers=16MB"], **common)
        self.url = f"postgresql://quire@/postgres?host={self.path}"
        self.wait_until_ready()
        return self

    def wait_until_ready(self):
        """It writes its socket's lock file first and says in it when it is ready; a test that waits for ever is ended."""
        pid_file = self.path / "data" / "postmaster.pid"
        while not pid_file.exists() or not pid_file.read_text().rstrip().endswith("ready"):
            assert self.process.poll() is None, (self.path / "log").read_text()
            time.sleep(0.01)

    def __exit__(self, *what):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.log.close()
        self.folder.cleanup()
