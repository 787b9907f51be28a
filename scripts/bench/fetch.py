"""Builds this checkout and fetches the peers into .cache/: Apache Kafka's jars with Maven; `rdkafka_performance` and
librdkafka's test suite from the source that the crate rdkafka-sys carries."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import CACHE, CHECKOUT

# The C library inside is what matters.
RDKAFKA_SYS_VERSION = "4.10.0"
LIBRDKAFKA_VERSION = "2.12.1"

MANIFEST = f"""[package]
name = "fetch-rdkafka"
version = "0.0.0"
edition = "2021"

[lib]
path = "lib.rs"

[dependencies]
rdkafka-sys = "={RDKAFKA_SYS_VERSION}"

[workspace]
"""


def run(command, cwd=CHECKOUT, log=None):
    """Runs a step whose output matters only if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if log:
        pathlib.Path(log).write_text(done.stdout)
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def build():
    print("building (release) ...", flush=True)
    run(["cargo", "build", "--release", "--workspace", "--locked"])
    return CHECKOUT / "target/release/corelog", CHECKOUT / "target/release/corelog-perf"


def kafka_libs():
    """Apache Kafka's jars, where `scripts/install-test-peers` keeps them too."""
    libs = CACHE / "kafka/libs"
    if not any(libs.glob("kafka_2.13-*.jar")):
        print("fetching Apache Kafka with Maven ...", flush=True)
        pom = CHECKOUT / "tests/clients/kafka/pom.xml"
        run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={libs}"])
    return libs


def rdkafka_performance():
    binary = CACHE / "rdkafka" / f"rdkafka_performance-{RDKAFKA_SYS_VERSION}"
    if binary.exists():
        return binary
    print("building librdkafka's rdkafka_performance ...", flush=True)
    with rdkafka_source() as source:
        run(["./configure", "--disable-ssl", "--disable-sasl", "--disable-curl"], cwd=source)
        run(["make", f"-j{os.cpu_count()}", "libs"], cwd=source)
        run(["make", "-C", "examples", "rdkafka_performance"], cwd=source)
        # It is linked statically, so the one file is all that is kept.
        shutil.copy2(source / "examples/rdkafka_performance", binary)
    return binary


def rdkafka_test_runner():
    """librdkafka's own tests, as one program, with the libraries that it loads beside it. Needs the headers of zlib, zstd
    and OpenSSL."""
    folder = CACHE / "rdkafka" / f"test-runner-{RDKAFKA_SYS_VERSION}"
    if folder.exists():
        return folder / "test-runner"
    print("building librdkafka's test suite ...", flush=True)
    features = ["--enable-zlib", "--enable-zstd", "--enable-ssl", "--disable-lz4-ext", "--disable-sasl", "--disable-curl"]
    with rdkafka_source() as source:
        make = ["make", f"-j{os.cpu_count()}"]
        run(["./configure", "--disable-debug-symbols", *features], cwd=source)
        run([*make, "libs"], cwd=source)
        # 60,000 lines of tests, each of which runs once: what optimizing them would take is never got back.
        run(["./configure", "--disable-debug-symbols", "--disable-optimization", *features], cwd=source)
        run([*make, "-C", "tests", "test-runner"], cwd=source)
        kept = source / "kept"
        kept.mkdir()
        for name in ["tests/test-runner", "src/librdkafka.so.1", "src-cpp/librdkafka++.so.1"]:
            shutil.copy2(source / name, kept)
        kept.rename(folder)
    return folder / "test-runner"


@contextlib.contextmanager
def rdkafka_source():
    """A copy of librdkafka's source to build in: the registry's is shared and read-only."""
    parent = CACHE / "rdkafka"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        folder = pathlib.Path(folder)
        (folder / "Cargo.toml").write_text(MANIFEST)
        (folder / "lib.rs").touch()
        run(["cargo", "fetch"], cwd=folder)
        metadata = subprocess.run(
            ["cargo", "metadata", "--format-version", "1"], cwd=folder, check=True, capture_output=True, text=True
        )
        crates = json.loads(metadata.stdout)["packages"]
        manifest = next(crate["manifest_path"] for crate in crates if crate["name"] == "rdkafka-sys")
        source = folder / "librdkafka"
        shutil.copytree(pathlib.Path(manifest).parent / "librdkafka", source)
        yield source
