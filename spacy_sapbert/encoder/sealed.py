"""t"""


def is_encoder_file(name: str) -> bool:
    return "/" not in name or name.startswith("openvino/")
