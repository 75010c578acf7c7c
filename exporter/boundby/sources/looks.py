"""What a page is, told by its lines, so that a refusal can name it.

Errors: `WrongPageError` < `ValueError`.
"""

import re

LOOKS = (
    ("vLLM", re.compile(r"^vllm:", re.MULTILINE)),
    ("SGLang", re.compile(r"^sglang:", re.MULTILINE)),
    ("vLLM behind Ray's exporter", re.compile(r"^ray_vllm", re.MULTILINE)),
    ("a Ray node exporter", re.compile(r"^ray_", re.MULTILINE)),
    ("Text Generation Inference", re.compile(r"^tgi_", re.MULTILINE)),
    ("TensorRT-LLM", re.compile(r"^trtllm[_:]", re.MULTILINE)),
    ("Triton with TensorRT-LLM", re.compile(r"^nv_trt_llm_", re.MULTILINE)),
    ("Triton", re.compile(r"^nv_inference_", re.MULTILINE)),
    ("llama.cpp", re.compile(r"^llamacpp:", re.MULTILINE)),
    ("LMDeploy", re.compile(r"^lmdeploy:", re.MULTILINE)),
    ("NVIDIA Dynamo", re.compile(r"^dynamo_", re.MULTILINE)),
    ("dcgm-exporter", re.compile(r"^(?:DCGM_|dcgm_)", re.MULTILINE)),
    ("AMD's device-metrics-exporter", re.compile(r"^\w*gpu_gfx_activity\b", re.MULTILINE)),
    ("node_exporter", re.compile(r"^node_", re.MULTILINE)),
    ("boundby itself", re.compile(r"^boundby_", re.MULTILINE)),
)
"""Lines by which a page betrays what serves it, the more telling first."""


SERVER_ONLY = "a Python server without engine metrics"

_SERVER = re.compile(
    r"^(?:python_info|process_cpu_seconds_total|http_requests_total)\b", re.MULTILINE
)
_TYPE = re.compile(r"^# TYPE ", re.MULTILINE)


class WrongPageError(ValueError):
    """The page is not what was asked for; `hint` says what to try."""

    def __init__(self, problem: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(problem)


def looks_like(text: str) -> str:
    """Name what serves `text`, as far as its lines tell."""
    for name, line in LOOKS:
        if line.search(text):
            return name
    start = text[:2048].lstrip("\ufeff \t\r\n")
    if not start:
        return "an empty page"
    if _SERVER.search(text):
        return SERVER_ONLY
    if _TYPE.search(text):
        return "an exporter of something else"
    return _no_metrics(start)


def _no_metrics(start: str) -> str:
    """Name what a text without metrics is by how it begins."""
    if "\x00" in start:
        return "binary data"
    return {"<": "a web page (HTML)", "{": "JSON", "[": "JSON"}.get(start[0], "no metrics page")
