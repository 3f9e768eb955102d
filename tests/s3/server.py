"""An S3 server of a test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from pyarrow import fs

from deploy.local.ports import free_port

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-s3"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "very-secret", "AWS_EC2_METADATA_DISABLED": "true"}
BUCKET = "touchstone"
_START_S = 60.0


class S3Server:
    """Keeps objects in memory: a stop loses them, a pause does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(ENVIRONMENT / "bin" / "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with (self._folder / "s3.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, env=variables, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self.files(allow_bucket_creation=True).create_dir(BUCKET)
                return
            except OSError:
                assert self._process.poll() is None, "The S3 server has ended"
                assert time.monotonic() < deadline, "The S3 server did not start"
                time.sleep(0.2)

    def files(self, **options: object) -> fs.S3FileSystem:
        return fs.S3FileSystem(endpoint_override=f"127.0.0.1:{self.port}", scheme="http", **options)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()

    def objects(self, prefix: str) -> dict[str, bytes]:
        """By name, without folders."""
        files, start = self.files(), f"{BUCKET}/{prefix}"
        found = files.get_file_info(fs.FileSelector(start, recursive=True, allow_not_found=True))
        return {
            info.path.removeprefix(f"{start}/"): files.open_input_stream(info.path).read()
            for info in found
            if info.type is fs.FileType.File
        }

    def put(self, name: str, content: bytes) -> None:
        with self.files().open_output_stream(f"{BUCKET}/{name}") as file:
            file.write(content)
