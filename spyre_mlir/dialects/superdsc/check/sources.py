"""Sources that rules for SuperDSC files are taken from."""

SCHEMA = "published SuperDSC schema of torch-spyre's validator"
PROSE_RULES = f"{SCHEMA}, prose rules"
FRONT_END = "torch-spyre code generation, real files"
DRAFT = "draft SuperDSC interface specification"
FUNCTION_LIST = "SuperDSC interface specification, supported functions"

__all__ = ["DRAFT", "FRONT_END", "FUNCTION_LIST", "PROSE_RULES", "SCHEMA"]
