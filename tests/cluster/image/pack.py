"""Pack a directory into an OCI image archive of one layer, without docker or a registry. Needs GNU tar.

Usage: pack.py OUT.tar IMAGE_NAME ROOT_DIRECTORY [--env NAME=VALUE]... -- COMMAND...
Import the result with `ctr -n k8s.io images import OUT.tar`.
"""

import argparse
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile
import tempfile
from pathlib import Path

MEDIA = "application/vnd.oci.image."
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def file_digest(path: Path) -> str:
    """Return the sha256 digest of a file as OCI writes it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return "sha256:" + digest.hexdigest()


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add bytes as a file to the archive."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def add_blob(archive: tarfile.TarFile, media: str, document: dict[str, object]) -> dict[str, object]:
    """Add a JSON document as a blob and return its descriptor."""
    data = json.dumps(document).encode()
    digest = hashlib.sha256(data).hexdigest()
    add(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": MEDIA + media, "digest": f"sha256:{digest}", "size": len(data)}


def pack(out: Path, name: str, root: Path, environment: list[str], command: list[str]) -> None:
    """Write the image archive."""
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        layer = Path(folder) / "layer.tar"
        subprocess.run(["tar", "--numeric-owner", "-C", str(root), "-cf", str(layer), "."], check=True)
        digest = file_digest(layer)
        with tarfile.open(out, "w") as archive:
            add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
            config = add_blob(
                archive,
                "config.v1+json",
                {
                    "architecture": architecture,
                    "os": "linux",
                    "config": {"Env": [PATH, "HOME=/root", *environment], "Cmd": command},
                    "rootfs": {"type": "layers", "diff_ids": [digest]},
                },
            )
            layers = [{"mediaType": MEDIA + "layer.v1.tar", "digest": digest, "size": os.path.getsize(layer)}]
            manifest = add_blob(
                archive,
                "manifest.v1+json",
                {"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config, "layers": layers},
            )
            manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
            add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
            archive.add(layer, f"blobs/sha256/{digest.removeprefix('sha256:')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("root", type=Path)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    pack(arguments.out, arguments.name, arguments.root, arguments.env, arguments.command)


if __name__ == "__main__":
    main()
