#!/usr/bin/env python3
"""Fails on identifiers of Firn's own for what has a name in the field.

    check_words.py ROOT [CTAGS]

WORDS has a row per word: a pattern of whole identifiers, where it is looked for below ROOT, and the field's word.
Universal ctags finds what is declared: functions, types, members, variables, parameters.
"""
import re
import subprocess
import sys

EVERYWHERE = r"compiler/"
KERNELS = r"compiler/(plan|lower)/"
CONTRACTIONS = (r"compiler/plan/(attention|bf16_attention|choose_matrices|composites|contraction_plan|dot|kernel_plan|"
                r"mac_instruction|tile_loops|tile_matrices|tiling|windows)\.|compiler/lower/(contraction|attention)/")
WORDS = [
    (r"kMost\w*|kLeast\w*|most_?|least_?|(most|least)_(?!of_all|squares|roomy)\w+|\w+(?<!at)_(most|least)_?", EVERYWHERE,
     "kMax, kMin, max, min; the baseline of several CPUs"),
    (r"sums_?|SumsIn|SumsArray|Sums|sum_tiles", KERNELS, "accumulators, AccumulatorSpace, SpillBuffer"),
    (r"steps_?", CONTRACTIONS, "k, k_extent"),
    (r"copies", r"compiler/(plan|lower/(element|normalization|movement))/", "unroll"),
    (r"boxes|Cut|cuts", r"compiler/lower/element/|compiler/plan/element_code|compiler/plan/kernel_plan",
     "LoopPartition, SplitPoint"),
    (r"turns|in_turns", KERNELS, "alternate_direction"),
    (r"apart", KERNELS, "separate_transform"),
    (r"(wants_)?lhs_columns", EVERYWHERE, "swap_operands"),
    (r"is_for_least_?|narrower", EVERYWHERE, "baseline, variants"),
    (r"\w*keeps?_terms|\w*short_terms", EVERYWHERE, "stores_exponentials, fast_exp"),
    (r"text_room_?", EVERYWHERE, "string_arena"),
    (r"magnitudes|Magnitudes", EVERYWHERE, "value_ranges"),
    (r"waits_for_weights", EVERYWHERE, "is_memory_bound"),
    (r"share_tables", EVERYWHERE, "tie_embeddings"),
    (r"PlainPlan|Members", KERNELS, "FixedPlan, Inline"),
    (r"distance_of", EVERYWHERE, "storage_offset"),
    (r"factors|Factors|\w+_factors|\w+Factors", r"compiler/lower/", "operands"),
    (r"Product|ProductKind|ProductForm|ProductFacts", r"compiler/(?!quantize)", "MacInstruction, MacKind, MacForm, MacFacts"),
    (r"shares|parts", r"compiler/plan/(contraction_plan|kernel_plan|tile_loops|tiling)\.", "split_m, split_k"),
    (r"straight_?|straight_window|k\w*Straight\w*", KERNELS, "unrolled, max_unrolled_window"),
    (r"fetch_ahead|\w*FetchAhead", EVERYWHERE, "prefetch_distance"),
    (r"together", KERNELS, "cooperative"),
    (r"looped_\w+|bias_first", EVERYWHERE, "rolled_epilogue, bias_in_accumulators"),
    (r"compact|kCompact\w+", KERNELS, "optimize_size"),
    (r"hot|hot_values|Hot[A-Z]\w+", r"compiler/(driver|codegen|artifact)/", "specializations"),
    (r"ImageCopy|image_copy|images?_?|lines_?|[Ll]ine_?[Pp]ooling\w*", r"compiler/(plan/(?!schedule)|lower/convolution/)",
     "feature_map, rows, row_pooling"),
    (r"gains|gains_by_\w+|wants_\w+|pays|\w+_pays", EVERYWHERE, "is_profitable_*, prefers_*"),
    (r"tabulate\w*", EVERYWHERE, "lower_to_lookup_table"),
    (r"Place|MatrixPlace", r"compiler/lower/", "BufferSlice"),
    (r"\w*meeting\w*", EVERYWHERE, "dim unification"),
    (r"is_read_from_afar", EVERYWHERE, "spills_last_level"),
]


def identifiers(root, ctags):
    command = [ctags, "-R", "--languages=C++", "--c++-kinds=+pxlz", "--langmap=C++:+.def", "-f", "-", "compiler"]
    output = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        if not line.startswith("!"):
            name, path = line.split("\t")[:2]
            yield name, path


def violations(root, ctags):
    rows = [(re.compile(words), re.compile(where), field) for words, where, field in WORDS]
    for name, path in sorted(set(identifiers(root, ctags))):
        for words, where, field in rows:
            if words.fullmatch(name) and where.match(path):
                yield f"{path}: {name} has a name in the field: {field}"


if __name__ == "__main__":
    found = list(violations(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "ctags"))
    print("\n".join(found) or "every word is the field's")
    sys.exit(1 if found else 0)
