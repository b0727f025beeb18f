"""llama.cpp's programs, built from the archive that also brings ggml: what the comparisons with it share."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("PENELOPE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penelope.cpp")


def fetched(what):
    subprocess.run([sys.executable, ROOT / "ggml" / "fetch", what], check=True, stdout=subprocess.DEVNULL)
    return Path(subprocess.run([sys.executable, ROOT / "ggml" / "fetch", "--path", what], check=True, capture_output=True, text=True).stdout.strip())


def build_llama_cpp(*tools):
    """The folder with these programs, built once beside the fetched archive."""
    source, build = fetched("llama.cpp"), CACHE / "llama.cpp-build"
    if not all((build / "bin" / tool).exists() for tool in tools):
        print(f"building {', '.join(tools)} (once, some minutes)", file=sys.stderr)
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        # GCC loses part of the configuration of AMX tiles (ggml/CMakeLists.txt): both sides go without them.
        flags = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" if platform.machine() == "x86_64" else ""
        run_quietly(["cmake", "-S", source, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DGGML_LLAMAFILE=ON",
                     f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
                     "-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"])
        run_quietly(["cmake", "--build", build, "-j", str(os.cpu_count()), "--target", *tools])
    return build / "bin"


def run_quietly(command):
    """Says what the command said only when it failed."""
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode != 0:
        sys.exit(f"{ran.stdout[-4000:]}\nfailed: {' '.join(map(str, command))}")
