"""Errors and warnings of encoders."""


class EncoderErrors:
    E201 = "{path}: Expected the settings of an encoder, but: {reason}"
    E202 = (
        "Expected settings like {expected}, but got something else. Train or copy the "
        "encoder again."
    )
    E203 = (
        "Expected an encoder under {name!r}, but it could not be loaded: {reason} Name "
        "a folder that `save_pretrained` wrote, or a hub id with the network on."
    )
    E204 = (
        "Expected a precision of 'float32' or 'bf16', but got {precision!r}. Correct "
        "`precision` in the encoder's settings."
    )
    E205 = (
        "Expected an encoder with a fast tokenizer, but {name} has none. Save it once "
        "with `AutoTokenizer.from_pretrained(…, use_fast=True).save_pretrained(…)`."
    )
    E206 = (
        "Expected weights in {path}, in safetensors or in `pytorch_model.bin`, but "
        "found none. Copy the encoder again, or save it with `save_pretrained`."
    )
    E207 = (
        "{path}: Expected an encoder that needs no code of its own, but it has an "
        "`auto_map`. Foreign code is not run; choose another encoder."
    )
    E208 = (
        "Expected an encoder folder at {path}, but found none. Check the path, or name "
        "a hub id."
    )
    E209 = (
        "Expected an encoder of the architecture {known} for an adapter, but got "
        "{got}. Choose another base, or train all of its weights."
    )
    E210 = (
        "{path}: Expected the description of an adapter, but: {reason}. Save or copy "
        "the adapter again, or update spacy-sapbert if a newer one made it."
    )
    E211 = (
        "{path}: Expected the weights of an adapter, but: {reason} Copy the adapter "
        "again, or put it into the encoder that it was trained in."
    )
    E212 = (
        "{path}: Expected the encoder that the adapter was trained in, but: {reason} "
        "Correct `base` in this file to its folder or hub id."
    )
    E213 = (
        "Expected an encoder without an adapter, but it has one. Load the encoder that "
        "the adapter was trained in."
    )
    E220 = (
        "Expected an engine among {known}, but got {engine!r}. Correct the engine of "
        "the encoder."
    )
    E221 = (
        "Expected OpenVINO for this encoder, but it is not installed. Run "
        '`pip install "openvino>=2024.4"`, or choose the engine "torch".'
    )
    E223 = (
        "{path}: Expected an encoder that OpenVINO can run, but: {reason} Export it "
        "again with the version of OpenVINO that is installed here, or choose the "
        'engine "torch".'
    )
    E224 = (
        "Expected vectors like the encoder's own from OpenVINO (cosine above {least}), "
        'but the least cosine is {cosine:.4f}. Use the engine "torch" for this '
        "encoder."
    )
    E225 = (
        "{path}: Expected an encoder that needs nothing outside of its folder, but "
        "{reason}. Save the encoder again with `save_pretrained`, or choose another "
        "one."
    )
    E226 = (
        "Expected all weights of the encoder {name}, but {count} are missing, e.g. "
        "{example}. Save the encoder again with `save_pretrained`; if its weights "
        "have a prefix such as `module.`, remove it."
    )
    E227 = (
        "Expected trained weights in the encoder {name}, but {weight} is {problem}. "
        "Train or copy the encoder again."
    )
    E228 = (
        "{path}: Expected a tokenizer that the library tokenizers can run, but "
        "{reason}. Choose another encoder, or save it again with `save_pretrained`."
    )
    E230 = (
        "Expected a `max_length` of at most {limit}, the positions of the encoder "
        "{name}, but got {got}. Correct it in sapbert.json or with `--max-length`."
    )
    E231 = (
        "Expected token states for a name of `max_length` tokens from the encoder "
        "{name}, but it failed: {reason} Lower `max_length`, or choose another encoder."
    )
    E232 = (
        "Expected token ids below {limit}, the number that the encoder has, but its "
        "tokenizer made {got}. Copy the encoder again, with its own tokenizer."
    )
    E233 = (
        "{path}: Expected pickled weights and nothing else, but it is damaged or has "
        "something else, which is not opened, as it could run code. Copy the file "
        "again, or choose an encoder with safetensors."
    )
    E234 = (
        "{path}: Expected an encoder of sentence-transformers with the parts "
        "`Transformer`, `Pooling` (cls or mean) and `Normalize`, but {reason}. Choose "
        "another encoder; or write `sapbert.json` into its folder, with `pooling`, "
        "`max_length` and `lowercase`, to run the `Transformer` alone."
    )
    E634 = (
        "Expected an encoder folder or a hub id, but {name!r} is no folder, and was "
        "not found on the hub: {reason} Nor is it in the cache of the hub. Check the "
        "name and the network, or name a folder that `save_pretrained` wrote."
    )
    E635 = (
        "Expected a pooling of {known}, but got {pooling!r}. Correct `--pooling`, or "
        "`pooling` in the settings of the encoder."
    )


class EncoderWarnings:
    W600 = (
        "Expected weights in safetensors, but got the pickled weights {path}. They are "
        "read as weights alone, without running code; what is written is safetensors."
    )
