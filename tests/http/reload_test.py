#!/usr/bin/env python3
"""`quire serve` with HTTPS, and when it is told that its configuration has changed: what is taken at once, what waits, and
that nothing changes where something is wrong."""
import http.client
import json
import os
import pathlib
import pty
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
from server import environment as clean_environment  # noqa: E402

QUIRE = str(script.BUILD / "quire")


def environment(folder, **more):
    return clean_environment(f"{folder}/data", QUIRE_CONFIG=f"{folder}/quire.ini", **more)


class Server:
    """A server with a configuration file; its log is JSON and read line by line."""

    def __init__(self, settings="", **env):
        self.folder = tempfile.TemporaryDirectory()
        self.name = self.folder.name
        self.env = environment(self.name, QUIRE_LOG_FORMAT="json", **env)
        self.write(settings)

    def write(self, settings):
        pathlib.Path(self.name, "quire.ini").write_text(settings)

    def __enter__(self):
        self.process = subprocess.Popen([QUIRE, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=self.env, text=True)
        self.url = self.process.stdout.readline().split()[2]
        self.scheme, _, authority = self.url.partition("://")
        self.port = int(authority.split(":")[1])
        return self

    def __exit__(self, kind, *what):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=60)
        self.folder.cleanup()
        if kind is None:
            assert self.process.returncode == 0, (self.process.returncode, errors)

    def reload(self):
        """What it says about it, without the lines of requests."""
        self.process.send_signal(signal.SIGHUP)
        lines = []
        while not lines or lines[-1]["event"] not in ("reloaded", "reload_failed"):
            line = json.loads(self.process.stderr.readline())
            if line["event"] not in ("request", "certificate_in_force"):
                lines.append(line)
        return lines

    def ask(self, path="/healthz", method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status


def make_certificate(folder, name, serial, names="DNS:localhost,IP:127.0.0.1"):
    """Files with a certificate that signs itself; its key is the machine's owner's."""
    certificate, key = f"{folder}/{name}.pem", f"{folder}/{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=localhost", "-days", "2", "-addext",
                    "subjectAltName=" + names, "-set_serial", str(serial)],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    return certificate, key


def tls_settings(certificate, key):
    return f"[server]\ntls_certificate = {certificate}\ntls_key = {key}\n"


def connect_tls(server, trusted):
    """A connection, and the serial number of the certificate that it is with."""
    context = ssl.create_default_context(cafile=trusted)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
    connection.connect()
    return connection, int(connection.sock.getpeercert()["serialNumber"], 16)


def ask_on(connection, path="/healthz"):
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def events(lines):
    return [(line["event"], line.get("setting")) for line in lines]


# ---- HTTPS ----

def test_https_is_served_and_its_certificate_exchanged():  # HTTP-10
    with tempfile.TemporaryDirectory() as folder:
        first, second = make_certificate(folder, "first", 11), make_certificate(folder, "second", 22)
        with Server(tls_settings(*first)) as server:
            assert server.scheme == "https", server.url
            before, serial = connect_tls(server, first[0])
            assert serial == 11 and ask_on(before) == 200
            # other files
            server.write(tls_settings(*second))
            assert events(server.reload()) == [("setting_changed", "server.tls_certificate"),
                                               ("setting_changed", "server.tls_key"), ("reloaded", None)]
            after, serial = connect_tls(server, second[0])
            assert serial == 22 and ask_on(after) == 200 and ask_on(before) == 200
            # the same files with other content
            os.replace(first[0], second[0])
            os.replace(first[1], second[1])
            assert events(server.reload()) == [("reloaded", None)]
            again, serial = connect_tls(server, second[0])
            assert serial == 11 and ask_on(again) == 200 and ask_on(after) == 200 and ask_on(before) == 200
            # content that is no good: the key of another certificate
            make_certificate(folder, "second", 33)
            make_certificate(folder, "other", 44)
            os.replace(f"{folder}/other.key", second[1])
            failed = server.reload()
            assert failed[-1]["event"] == "reload_failed" and "is not the key of" in failed[-1]["message"], failed
            for connection in (before, after, again):
                assert ask_on(connection) == 200
                connection.close()


def test_the_command_line_works_through_https():
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(folder, "one", 1)
        other, _ = make_certificate(folder, "other", 2)
        with Server(tls_settings(certificate, key)) as server:
            made = subprocess.run([QUIRE, "--json", "key", "create", "ops", "--admin"], env=server.env, check=True,
                                  capture_output=True, text=True).stdout
            passed = {name: value for name, value in server.env.items() if name.endswith("SAN_OPTIONS")}

            def list_bases(url, trusted):
                env = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "QUIRE_KEY": json.loads(made)["secret"],
                       "SSL_CERT_FILE": trusted, **passed}
                return subprocess.run([QUIRE, "--server", url, "--json", "base", "ls"], env=env, capture_output=True,
                                      text=True, timeout=60)

            for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
                done = list_bases(url, certificate)
                assert done.returncode == 0 and json.loads(done.stdout)["data"] == [], done
            # whom nobody vouches for, who has another name, and who does not speak TLS at all
            done = list_bases(server.url, other)
            assert done.returncode != 0 and "is not known to be 127.0.0.1" in done.stdout, done
            done = list_bases(server.url, folder + "/missing.pem")
            assert done.returncode != 0 and "missing.pem" in done.stdout, done
        foreign = make_certificate(folder, "foreign", 3, "DNS:other.example")
        with Server(tls_settings(*foreign)) as server:
            done = list_bases(server.url, foreign[0])
            assert done.returncode != 0 and "is not known to be 127.0.0.1" in done.stdout, done
        with Server() as server:
            done = list_bases(server.url.replace("http:", "https:"), certificate)
            assert done.returncode != 0 and "TLS: " in done.stdout, done


def start_and_fail(folder, settings):
    pathlib.Path(folder, "quire.ini").write_text(settings)
    done = subprocess.run([QUIRE, "serve", "--listen", "127.0.0.1:0"], env=environment(folder), capture_output=True,
                          text=True, timeout=60)
    assert done.returncode != 0 and done.stdout == "", done
    return done.stderr


def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start():  # HTTP-10
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(folder, "one", 1)
        assert "HTTPS needs both" in start_and_fail(folder, f"[server]\ntls_certificate = {certificate}\n")
        assert "HTTPS needs both" in start_and_fail(folder, f"[server]\ntls_key = {key}\n")
        assert "missing.pem" in start_and_fail(folder, tls_settings(f"{folder}/missing.pem", key))
        os.chmod(key, 0o644)
        assert "by everybody" in start_and_fail(folder, tls_settings(certificate, key))


# ---- reload ----

def test_a_reload_takes_what_can_change_and_names_what_waits():  # HTTP-11
    with Server("[server]\nthreads = 4\n") as server:
        assert server.ask(Host="wiki.example") == 421
        server.write("[server]\nthreads = 8\nhosts = wiki.example\nbody_limit = 1KB\n[log]\nlevel = debug\n")
        lines = server.reload()
        assert events(lines) == [("setting_waits_for_restart", "server.threads"), ("setting_changed", "log.level"),
                                 ("setting_changed", "server.hosts"), ("setting_changed", "server.body_limit"),
                                 ("reloaded", None)], lines
        assert lines[0]["value"] == "8" and lines[0]["from"].endswith("quire.ini:2"), lines
        assert lines[-1]["changed"] == 3 and lines[-1]["waiting_for_restart"] == 1, lines
        assert server.ask(Host="wiki.example") == 200
        assert server.ask("/api/v1/bases", "POST", b" " * 2000, Content_Type="application/json") == 413
        # what waits waits on; nothing else is new
        assert events(server.reload()) == [("setting_waits_for_restart", "server.threads"), ("reloaded", None)]
        # a line that is gone is the default again
        server.write("[server]\nthreads = 4\n")
        lines = server.reload()
        assert {line.get("from") for line in lines[:-1]} == {"default"} and len(lines) == 4, lines
        assert server.ask(Host="wiki.example") == 421


def test_a_reload_with_anything_wrong_changes_nothing():  # HTTP-11
    with Server() as server:
        for wrong in ("[server]\nhosts = wiki.example\nno_such_setting = 1\n",
                      "[server]\nhosts = wiki.example\nthreads = many\n",
                      "[server]\nhosts = wiki.example\ntls_key = /nonexistent\n",
                      "hosts = wiki.example"):
            server.write(wrong)
            lines = server.reload()
            assert len(lines) == 1 and lines[0]["event"] == "reload_failed", lines
            assert "quire.ini:" in lines[0]["message"], lines
            assert server.ask(Host="wiki.example") == 421
        os.remove(server.name + "/quire.ini")
        lines = server.reload()
        assert lines[0]["event"] == "reload_failed" and "quire.ini" in lines[0]["message"], lines
        server.write("[server]\nhosts = wiki.example\n")
        assert events(server.reload()) == [("setting_changed", "server.hosts"), ("reloaded", None)]
        assert server.ask(Host="wiki.example") == 200


def test_https_is_not_switched_on_while_it_serves():  # HTTP-11
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        server.write(tls_settings(*make_certificate(folder, "one", 1)) + "hosts = wiki.example\n")
        assert events(server.reload()) == [("setting_waits_for_restart", "server.tls_certificate"),
                                           ("setting_waits_for_restart", "server.tls_key"),
                                           ("setting_changed", "server.hosts"), ("reloaded", None)]
        assert server.ask(Host="wiki.example") == 200


def test_flags_and_variables_stay_stronger_than_the_file():  # HTTP-11
    with Server(QUIRE_SERVER_HOSTS="from.environment") as server:
        server.write("[server]\nhosts = from.file\n")
        assert events(server.reload()) == [("reloaded", None)]
        assert server.ask(Host="from.environment") == 200 and server.ask(Host="from.file") == 421


def test_the_library_takes_its_settings_too():  # HTTP-11
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        pathlib.Path(folder, "note.txt").write_text("a lighthouse")
        made = subprocess.run([QUIRE, "--json", "key", "create", "ops", "--admin"], env=server.env, check=True,
                              capture_output=True, text=True).stdout
        headers = {"Authorization": "Bearer " + json.loads(made)["secret"], "Content-Type": "application/json"}
        assert server.ask("/api/v1/bases", "POST", json.dumps({"name": "b"}), **headers) == 201
        body = json.dumps({"items": [{"type": "file", "path": folder + "/note.txt"}]})
        refused = server.ask("/api/v1/bases/b/items", "POST", body, **headers)
        assert refused == 403, refused
        server.write(f"[server]\nimport_roots = {folder}\n")
        assert events(server.reload()) == [("setting_changed", "server.import_roots"), ("reloaded", None)]
        assert server.ask("/api/v1/bases/b/items", "POST", body, **headers) == 202


def test_the_log_gets_its_new_level_and_the_manager_is_told():  # HTTP-11
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(folder + "/notify")
        manager.settimeout(50)
        with Server(NOTIFY_SOCKET=folder + "/notify") as server:
            assert manager.recv(200) == b"READY=1"
            server.write("[log]\nlevel = error\n")
            server.process.send_signal(signal.SIGHUP)
            said = dict(line.split("=") for line in manager.recv(200).decode().split("\n"))
            assert said["RELOADING"] == "1" and int(said["MONOTONIC_USEC"]) > 0, said
            assert manager.recv(200) == b"READY=1"
            assert server.ask() == 200
            server.process.send_signal(signal.SIGTERM)
            _, errors = server.process.communicate(timeout=60)
            assert server.process.returncode == 0 and '"request"' not in errors and '"ending"' not in errors, errors


# ---- a terminal ----

def test_a_closed_terminal_ends_it_and_a_reload_does_not():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "quire.ini").write_text("")
        out, log = os.pipe(), open(folder + "/log", "w+b")
        pid, terminal = pty.fork()
        if pid == 0:
            os.dup2(out[1], 1)
            os.dup2(log.fileno(), 2)
            os.execve(QUIRE, [QUIRE, "serve", "--listen", "127.0.0.1:0"], environment(folder))
        os.close(out[1])
        lines = os.fdopen(out[0])
        assert lines.readline().startswith("listening on ")
        os.kill(pid, signal.SIGHUP)
        while b"reloaded" not in pathlib.Path(folder, "log").read_bytes():
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        os.close(terminal)
        assert os.waitpid(pid, 0)[1] == 0
        assert b"signal=SIGHUP" in pathlib.Path(folder, "log").read_bytes()
        lines.close()
        log.close()


if __name__ == "__main__":
    script.main(globals())
