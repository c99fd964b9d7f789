"""The files of a bundle that follow from the program alone, as text: all but the weights, and the manifest of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.manifest import Parts, static_manifest
from spyre_mlir.backend.provenance import Levels
from spyre_mlir.backend.split import in_folder, launches, public_parts, split_module
from spyre_mlir.backend.stored import BUNDLE_FILE, PROGRAM_FILE
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.text.map_aliases import text_with_map_names
from spyre_mlir.text.render import module_text


@dataclass(frozen=True)
class RenderedBundle:
    """A bundle as text.

    Attributes:
        program: returns the host program, which says how weights lie on the device.
        texts: per file its text, by place in the directory; the manifest is not among them.
        manifest: the manifest of a bundle without weights and digests.
    """

    program: Callable[[], ModuleOp]
    texts: Mapping[str, str]
    manifest: JsonObject


def render(module: ModuleOp, levels: Levels) -> RenderedBundle:
    """Render the files of a bundle.

    Args:
        module: at the superdsc level.
        levels: the same program on the levels above, for the manifest; may be empty.

    Raises:
        EmitError: the module cannot be written as files.
    """
    program, bundle, files = split_module(module)
    manifest = static_manifest(Parts(program, bundle, files, levels))
    return RenderedBundle(lambda: program, dict(_texts(program, bundle, files)), manifest)


def _texts(program: ModuleOp, bundle: ModuleOp, files: Mapping[str, SdscOp]) -> Iterator[tuple[str, str]]:
    yield PROGRAM_FILE, module_text(program) + "\n"
    for folder, part in public_parts(bundle).items():
        yield in_folder(folder, BUNDLE_FILE), text_with_map_names(part) + "\n"
        for name in dict.fromkeys(op.sdsc_filename.data for op in launches(part)):
            yield in_folder(folder, name), write_json(files[name])
