"""`quire serve` for as long as a block lasts."""
import os
import signal
import subprocess

import script


class Server:
    def __init__(self, data):
        self.data = data

    def __enter__(self):
        env = dict(os.environ, QUIRE_DATA=self.data, QUIRE_LOG_LEVEL="warn")
        self.process = subprocess.Popen([str(script.BUILD / "quire"), "serve", "--listen", "127.0.0.1:0"], env=env,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        assert line[:2] == ["listening", "on"], line
        self.url = line[2]
        return self

    def __exit__(self, *what):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0 or what[0]
