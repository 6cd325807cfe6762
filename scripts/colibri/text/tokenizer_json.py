# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face tokenizer.json as rules. The file is untrusted; what the rules cannot express raises Unsupported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from colibri.text.bytelevel import GPT2_PATTERN, to_bytes
from colibri.text.json_values import (
    dict_of,
    document,
    id_of,
    kind_of,
    list_of,
    merge_of,
    scored_of,
    sequence_of,
    text_of,
)
from colibri.text.pattern import UnsupportedPattern, parse
from colibri.text.rules import VISIBLE_SPACE, Bpe, Merge, Prefix, Rules, Special, Split, Unigram, Unsupported
from colibri.text.scored import splits_at_spaces


def rules_of(raw: bytes) -> Rules:
    """The rules of a tokenizer.json. Raises Unsupported."""
    try:
        return _Reader(document(raw)).rules()
    except RecursionError:
        raise Unsupported("parts inside parts, deeper than any tokenizer has them") from None
    except KeyError as error:
        raise Unsupported(f"a tokenizer without {error}") from None


@dataclass
class _Text:
    """What normalizer and pre-tokenizer say."""

    by_bytes: bool = False
    spaces: bool = False
    nfc: bool = False
    prefix: Prefix = "none"
    splits: list[Split] = field(default_factory=list)


class _Reader:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.model = dict_of(document.get("model"), "model")
        self.text = _Text()

    def rules(self) -> Rules:
        for part in sequence_of(self.document.get("normalizer"), "normalizers"):
            self._normalizer(part)
        for part in sequence_of(self.document.get("pre_tokenizer"), "pretokenizers"):
            self._pre_tokenizer(part)
        names = self._names()
        specials, hidden = self._specials(names)
        byte_ids = self._byte_ids(names)
        tokens = tuple(self._bytes(names[i], i, specials) if i in names else None for i in range(max(names) + 1))
        by_name = {name: i for i, name in names.items()}
        model = self._bpe(by_name) if self._model_type() == "BPE" else self._unigram(len(tokens))
        before, after = self._template(by_name)
        unknown = self._unknown(by_name)
        for i in (*before, *after, *([] if unknown is None else [unknown])):
            if i not in names:
                raise Unsupported(f"an id that is {i}, which no token has")
        splits = tuple(self.text.splits)
        if not splits and isinstance(model, Bpe) and not self.text.by_bytes and splits_at_spaces(tokens):
            splits = (Split(parse(" *[^ ]+| +")),)
        return Rules(
            tokens=tokens,
            model=model,
            by_bytes=self.text.by_bytes,
            hidden=hidden,
            added=frozenset(names) - frozenset(self._model_names().values()),
            spaces=self.text.spaces,
            byte_ids=byte_ids,
            byte_fallback=bool(self.model.get("byte_fallback")) and not self.text.by_bytes,
            byte_tokens=self._decodes_bytes(),
            nfc=self.text.nfc,
            unknown=unknown,
            fuse_unknown=bool(self.model.get("fuse_unk")) or isinstance(model, Unigram),
            prefix=self.text.prefix,
            splits=splits,
            specials=specials,
            before=before,
            after=after,
            strip=self._strip(),
        )

    # --- normalizer and pre-tokenizer

    def _normalizer(self, part: dict[str, Any]) -> None:
        match part:
            case {"type": "NFC"} if not self.text.spaces and self.text.prefix == "none":
                self.text.nfc = True
            case {"type": "Prepend", "prepend": str(text)} if text == VISIBLE_SPACE:
                self.text.prefix = "always"
            case {"type": "Replace", "pattern": {"String": " "}, "content": str(text)} if text == VISIBLE_SPACE:
                self.text.spaces = True
            case _:
                raise Unsupported(f"the normalizer {kind_of(part)}")

    def _pre_tokenizer(self, part: dict[str, Any]) -> None:
        if self.text.by_bytes:
            raise Unsupported("a pre-tokenizer after ByteLevel")
        match part:
            case {"type": "ByteLevel"}:
                self.text.by_bytes = True
                if part.get("add_prefix_space"):
                    self._prefix("unless_space", first=not self.text.splits)
                if part.get("use_regex", True):
                    self.text.splits.append(Split(parse(GPT2_PATTERN)))
            case {"type": "Metaspace"}:
                self._metaspace(part)
            case {"type": "Digits"}:
                self.text.splits.append(Split(parse(r"\p{N}" if part.get("individual_digits") else r"\p{N}+")))
            case {"type": "Split", "pattern": {"Regex": str(pattern)}}:
                self._split(pattern, part)
            case _:
                raise Unsupported(f"the pre-tokenizer {kind_of(part)}")

    def _prefix(self, prefix: Prefix, *, first: bool) -> None:
        if self.text.prefix != "none" or not first:
            raise Unsupported("a space put before the text in two places, or after a split")
        self.text.prefix = prefix

    def _metaspace(self, part: dict[str, Any]) -> None:
        if part.get("replacement") != VISIBLE_SPACE:
            raise Unsupported("a Metaspace of another character than U+2581")
        scheme = part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
        self.text.spaces = True
        if scheme != "never":
            self._prefix("unless_space" if scheme == "always" else "first_unless_space", first=not self.text.splits)
        if part.get("split", True):
            self.text.splits.append(Split(parse(" [^ ]*|[^ ]+")))

    def _split(self, pattern: str, part: dict[str, Any]) -> None:
        behavior = part.get("behavior")
        if behavior not in ("Isolated", "Removed") or part.get("invert"):
            raise Unsupported(f"a Split that is {str(behavior)[:40]}{' and inverted' if part.get('invert') else ''}")
        try:
            self.text.splits.append(Split(parse(pattern), behavior == "Removed"))
        except UnsupportedPattern as error:
            raise Unsupported(f"a Split pattern with {error}") from None

    # --- vocabulary

    def _model_type(self) -> str:
        name = self.model.get("type", "BPE" if "merges" in self.model else "?")
        if name not in ("BPE", "Unigram"):
            raise Unsupported(f"the model {kind_of(self.model)}; BPE and Unigram are read")
        return str(name)

    def _names(self) -> dict[int, str]:
        vocab = self._model_names() | {_content(a): id_of(a["id"]) for a in self._added()}
        names = {i: name for name, i in vocab.items()}
        if not names or len(names) != len(vocab):
            raise Unsupported("a vocabulary that is empty or gives an id twice")
        return names

    def _model_names(self) -> dict[str, int]:
        if self._model_type() == "BPE":
            return {text_of(name, "a token"): id_of(i) for name, i in dict_of(self.model.get("vocab"), "vocab").items()}
        return {scored_of(entry)[0]: i for i, entry in enumerate(list_of(self.model.get("vocab"), "vocab"))}

    def _added(self) -> list[dict[str, Any]]:
        return [dict_of(a, "added token") for a in list_of(self.document.get("added_tokens") or [], "added_tokens")]

    def _specials(self, names: dict[int, str]) -> tuple[tuple[Special, ...], frozenset[int]]:
        specials, hidden = [], set()
        for a in self._added():
            if a.get("single_word"):
                raise Unsupported(f"an added token that is a single word only: {_content(a)[:40]!r}")
            text, normalized = _content(a), bool(a.get("normalized"))
            spaced = self.text.spaces and (" " in text or VISIBLE_SPACE in text)
            if not text or (normalized and (spaced or (self.text.nfc and not text.isascii()))):
                raise Unsupported(f"an added token that is empty, or that normalisation would change: {text[:40]!r}")
            ends = {"left": bool(a.get("lstrip")), "right": bool(a.get("rstrip"))}
            specials.append(
                Special(
                    id_of(a["id"]), self._special_text(text, normalized), bool(a.get("special")), normalized, **ends
                )
            )
            if a.get("special"):
                hidden.add(id_of(a["id"]))
            assert names[id_of(a["id"])] == text
        return tuple(specials), frozenset(hidden)

    def _special_text(self, text: str, normalized: bool) -> bytes:
        """A normalised token is itself normalised, so a normalizer that prepends a space prepends one to it."""
        return (" " * (normalized and self.text.prefix == "always") + text).encode()

    def _bytes(self, name: str, i: int, specials: tuple[Special, ...]) -> bytes:
        special = next((s for s in specials if s.id == i), None)
        if special is not None:
            return special.text
        if self.text.by_bytes:
            mapped = to_bytes(name)
            return name.encode() if mapped is None else mapped
        if not self.text.spaces:
            return name.encode()
        if " " in name:
            raise Unsupported(f"a token with a space beside U+2581: {name[:40]!r}")
        return name.replace(VISIBLE_SPACE, " ").encode()

    def _byte_ids(self, names: dict[int, str]) -> tuple[int | None, ...] | None:
        by_name = {name: i for i, name in names.items()}
        if self.text.by_bytes:
            alphabet = {to_bytes(name): i for name, i in by_name.items() if len(name) == 1}
            return tuple(alphabet.get(bytes([b])) for b in range(256))
        if not self.model.get("byte_fallback") and not self._decodes_bytes():
            return None
        return tuple(by_name.get(f"<0x{b:02X}>") for b in range(256))

    def _decodes_bytes(self) -> bool:
        return any(p.get("type") == "ByteFallback" for p in sequence_of(self.document.get("decoder"), "decoders"))

    def _unknown(self, by_name: dict[str, int]) -> int | None:
        if self._model_type() == "Unigram":
            unknown = self.model.get("unk_id")
            return None if unknown is None else id_of(unknown)
        name = self.model.get("unk_token")
        return None if name is None else by_name[text_of(name, "unk_token")]

    # --- models

    def _bpe(self, by_name: dict[str, int]) -> Bpe:
        for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
            if self.model.get(key):
                raise Unsupported(f"a BPE with {key}")
        merges: list[Merge] = []
        for entry in list_of(self.model.get("merges"), "merges"):
            left, right = merge_of(entry)
            merges.append(Merge(by_name[left], by_name[right], by_name[left + right], len(merges)))
        last = {(m.left, m.right): m for m in merges}
        return Bpe(tuple(last.values()), bool(self.model.get("ignore_merges")))

    def _unigram(self, n_tokens: int) -> Unigram:
        scores = [scored_of(entry)[1] for entry in list_of(self.model.get("vocab"), "vocab")]
        if self.text.by_bytes:
            raise Unsupported("a Unigram model over bytes")
        return Unigram((*scores, *[0.0] * (n_tokens - len(scores))))

    # --- around the text

    def _template(self, by_name: dict[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        before: list[int] = []
        after: list[int] = []
        for part in sequence_of(self.document.get("post_processor"), "processors"):
            if part.get("type") == "ByteLevel":
                continue  # only moves offsets
            if part.get("type") != "TemplateProcessing":
                raise Unsupported(f"the post-processor {kind_of(part)}")
            target, seen = before, False
            for piece in list_of(part.get("single"), "single"):
                if "Sequence" in dict_of(piece, "single"):
                    if seen:
                        raise Unsupported("a template with two texts")
                    target, seen = after, True
                else:
                    target += self._special_ids(dict_of(piece["SpecialToken"], "SpecialToken")["id"], part, by_name)
        return tuple(before), tuple(after)

    def _special_ids(self, name: Any, part: dict[str, Any], by_name: dict[str, int]) -> list[int]:
        """The ids that a template's special token stands for."""
        name = text_of(name, "a special token")
        said = dict_of(part.get("special_tokens", {}), "special_tokens").get(name)
        if said is None:
            return [by_name[name]]
        return [id_of(i) for i in list_of(dict_of(said, "special_tokens").get("ids"), "ids")]

    def _strip(self) -> Literal["none", "one", "first_token"]:
        strip: Literal["none", "one", "first_token"] = "none"
        for part in sequence_of(self.document.get("decoder"), "decoders"):
            match part:
                case {"type": "ByteLevel"} if self.text.by_bytes:
                    pass
                case {"type": "Replace", "pattern": {"String": str(text)}, "content": " "} if text == VISIBLE_SPACE:
                    pass
                case {"type": "ByteFallback" | "Fuse"}:
                    pass
                case {"type": "Strip", "content": " ", "start": 0 | 1 as start, "stop": 0}:
                    strip = "one" if start else strip
                case {"type": "Metaspace"}:
                    strip = "first_token" if part.get("prepend_scheme", "always") != "never" else strip
                case _:
                    raise Unsupported(f"the decoder {kind_of(part)}")
        if self.document.get("decoder") is None:
            raise Unsupported("a tokenizer without a decoder")
        return strip


def _content(added: dict[str, Any]) -> str:
    return text_of(added["content"], "an added token")
