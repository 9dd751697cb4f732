"""A real Flower deployment on this machine: SuperLink and SuperNodes, TLS and node keys."""

import datetime
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

BIN = Path(sys.executable).parent
PATIENCE = 120  # seconds until a test gives up on a process


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def certificate(folder: Path, name: str) -> Path:
    """Write a certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(local, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return folder / f"{name}.pem"


class Deployment:
    """A SuperLink with SuperNodes, all on 127.0.0.1; with `secure`, TLS and node keys."""

    def __init__(self, folder: Path, *, secure: bool = True, simulation: bool = False) -> None:
        self.folder, self.secure = folder, secure
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.node_ids: dict[str, int] = {}
        home = folder / "flwr"
        home.mkdir()
        self.env = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        }
        self.authority = certificate(folder, "superlink") if secure else None
        trust = f'root-certificates = "{self.authority}"' if secure else "insecure = true"
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n'
            f"{trust}\n"
        )
        options = ["--insecure"]
        if self.authority:
            options = ["--ssl-ca-certfile", str(self.authority), "--ssl-certfile"]
            options += [str(self.authority), "--ssl-keyfile", str(folder / "superlink.key")]
            options += ["--enable-supernode-auth"]
        options += ["--simulation"] if simulation else []
        self.start(
            "superlink",
            "flower-superlink",
            *("--host", "127.0.0.1", "--port", str(self.port)),
            "--disable-runtime-dependency-installation",
            *options,
        )
        scheme = "https" if secure else "http"
        trusted = ssl.create_default_context(cafile=self.authority) if self.authority else None
        url = f"{scheme}://127.0.0.1:{self.port}/health"
        self.wait(lambda: urllib.request.urlopen(url, context=trusted))  # noqa: S310  # our own

    def start(self, name: str, command: str, *options: str) -> None:
        """Start a process in a group of its own."""
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603  # our own
                [BIN / command, *options],
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, ready: Any) -> Any:
        """Wait until something is true, and does not fail."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if value := ready():
                    return value
                problem = ""
            except (OSError, ValueError, KeyError) as error:
                problem = str(error)
            if time.monotonic() > until:
                raise TimeoutError(f"{problem}\n{self.logs()}")
            time.sleep(0.2)

    def register(self, names: list[str]) -> None:
        """Make a key for each node and tell the SuperLink the public ones."""

        def one(name: str) -> tuple[str, int]:
            key = ec.generate_private_key(ec.SECP384R1())
            private, public = self.folder / f"{name}.key", self.folder / f"{name}.pub"
            private.write_bytes(
                key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            )
            public.write_bytes(
                key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            )
            done = self.call("flwr", "supernode", "register", public, "here", "--format", "json")
            return name, int(json.loads(done.stdout)["node-id"])

        with ThreadPoolExecutor(2) as two:
            self.node_ids |= dict(two.map(one, names))

    def supernode(self, name: str, *config: str) -> None:
        """Start a SuperNode."""
        options = ["--insecure"]
        if self.authority:
            options = ["--root-certificates", str(self.authority)]
            options += ["--auth-supernode-private-key", str(self.folder / f"{name}.key")]
        self.start(
            name,
            "flower-supernode",
            *("--superlink", f"127.0.0.1:{self.port}"),
            *("--host", "127.0.0.1", "--port", str(free_port())),
            *("--node-config", " ".join(config)),
            *options,
        )

    def online(self, count: int) -> None:
        """Wait until so many SuperNodes are connected, and the SuperLink has missed the dead."""

        def ready() -> bool:
            listed = self.call("flwr", "supernode", "list", "here", "--format", "json")
            nodes = json.loads(listed.stdout)["nodes"]
            return len([1 for node in nodes if node["status"] == "online"]) == count

        self.wait(ready)

    def call(self, *command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment to its end."""
        return subprocess.run(  # noqa: S603  # our own
            [BIN / command[0], *map(str, command[1:])],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * 4,
            **options,
        )

    def run(self, app: Path, config: str, *options: str) -> str:
        """Run an app to its end and return what it said."""
        done = self.call("flwr", "run", app, "here", "--stream", "-c", config, *options)
        return done.stdout + done.stderr

    def kill(self, name: str) -> None:
        """Kill a process and its children, without a warning."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in self.folder.glob("*.log")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # whatever is left of its children
            process.wait()
