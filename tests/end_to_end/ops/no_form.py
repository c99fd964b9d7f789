"""Numbers that the compiler compares sizes with and that change no result, each with what it decides."""

NO_FORM = {
    "transforms.kernel_to_superdsc.bundle_function.USER_SEGMENTS": "how many arguments have an address of their own",
    "transforms.loop_to_kernel.settling.reachable_layouts.STICK_BYTES": "the size of a stick, which every layout has",
    "ops.composed.nn.normalization.DL16_SMALLEST": "the least epsilon that the device has",
    "ops.composed.nn.attention.MASKED": "what stands for minus infinity in a mask",
    "ops.composed.nn.softmax.MASKED": "what stands for minus infinity in a mask",
    "transforms.loop_to_kernel.buffers.MOST_PADDING": (
        "whether one layout meets all demands; test_one_layout.py has both"
    ),
    "transforms.regions.repetitions.LEAST_CALLS": "whether layers are one function; test_regions.py has both",
    "transforms.regions.repetitions.LEAST_SAVED": "whether layers are one function; test_regions.py has both",
    "transforms.regions.repetitions._WINDOW": "how repetitions are looked for",
    "transforms.utils.host_fallback._PLACES_SHOWN": "how many places a message shows",
    "transforms.planned_loops.loop_search.WORTH_TRYING_US": "whether a loop is tried",
    "transforms.planned_loops.loop_search.CLEAR_GAIN": "whether a loop is quicker; test_plan.py has both",
    "transforms.kernel_plans.kernel_choices.SLOW": "which divisions are considered",
    "transforms.kernel_plans.kernel_choices.SHORT_US": "which divisions are considered",
    "transforms.kernel_plans.kernel_choices.SLOW_US": "which divisions are considered",
    "transforms.planned_loops.loop_search.MOST_TRIPS": "in how many trips a sum grows; test_running_sums.py has both",
    "transforms.kernel_loops.running_sums.MOST_TRIPS": "in how many trips a sum grows; test_running_sums.py has both",
    "transforms.kernel_loops.repeated_weights._LEAST_GAIN_US": (
        "whether cores make the same columns; test_repeated_weights.py has both"
    ),
    "transforms.utils.kernels.widened_weights._MOST_KERNELS": (
        "where narrow weights stay; test_widened_weights.py has both"
    ),
    "transforms.aten_forms.pad_heads._ACCESSES": "whether heads are padded; test_pad_heads.py has both",
    "transforms.aten_forms.part_columns.LEAST_ROWS": "which products are parted; test_part_columns.py has both",
    "transforms.aten_forms.recognition.rotations._MOST_OPS": "how far before an op heads are looked for",
    "transforms.aten_forms.recognition.rotated_heads._MOST_PARTS": "how many parts a table is joined of",
    "transforms.aten_forms.recognition.rotated_heads.MOST_CHANNELS": (
        "whether channels are turned by a product; test_turn_heads.py has both"
    ),
    "transforms.kernel_loops.hinted_loops.MOST_LOOPS": "which hints are refused; test_hinted_loops.py has both",
    "transforms.kernel_plans.kernel_choices.MOST_KNOWN": "how much is remembered, never what is answered",
    "transforms.kernel_loops.hinted_loops.MOST_SHOWN": "how many numbers of trips a message shows",
    "transforms.buffer_layouts.repair.planned_layouts.FEW_ELEMENTS": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.prices.MOST_IN_FULL": "whether loops count in prices; test_prices.py has both",
    "transforms.buffer_layouts.repair.regions.ENDS": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.regions.MOST_OPS": "how far regions reach; test_regions.py has both",
    "transforms.buffer_layouts.repair.search.LEAST_PART": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.search.CLEAR_PART": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.search.LEAST_STICKS": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.search.MOST_IN_VAIN": "which layouts of a region are tried and kept",
    **dict.fromkeys(
        (
            f"transforms.buffer_layouts.repair.search.{name}"
            for name in ("MOST_WORK", "PLANNED_AND_PRICED", "PLANS", "TRIALS")
        ),
        "how many layouts are tried; test_search.py has both",
    ),
    "transforms.buffer_layouts.repair.trials.FEW_FOLLOWERS": "which layouts of a region are tried and kept",
    "transforms.buffer_layouts.repair.trials.CLEAR_GAIN": "which layouts of a region are tried and kept",
    **dict.fromkeys(
        ("transforms.aten_forms.take_experts.LAUNCH_US", "transforms.aten_forms.take_experts.STICK_BYTES"),
        "who meets which matrices; test_take_experts.py has both",
    ),
    "transforms.aten_forms.take_experts._LEAST_BITS": "which integers number experts",
    "transforms.aten_forms.take_experts._MOST_ROWS": "who meets which matrices; test_take_experts.py has both",
    "transforms.planned_loops.loop_search.LAUNCH_US": (
        "which of loops that gain alike are taken; test_loop_search.py has both"
    ),
    "transforms.kernel_plans.sliced_sums.STICK_BYTES": "the size of a stick, which every layout has",
    "transforms.kernel_plans.sliced_sums.SHORTEST_MEASURED_US": "which sums are priced; test_sliced_sums.py has both",
    "transforms.kernel_plans.sliced_sums.MOST_KERNELS": "how far around a sum kernels are planned again, for speed",
    "transforms.loop_to_kernel.settling.equal_extents._WORTH": "more sticks in buffers; test_equal_extents.py has both",
    "transforms.loop_to_kernel.later_reads._COPIED": "which layout a tensor has; test_later_reads.py has both",
    "transforms.loop_to_kernel.choose_lane.LITTLE": "which layout a copy has; test_choose_lane.py has both",
    "transforms.cut_nests.cut_rows.STICK_BYTES": "the size of a stick, which every layout has",
    "transforms.cut_nests.cut_rows.LITTLE": "whether rows are cut; test_cut_rows.py has both",
    "transforms.cut_nests.cut_rows.CLEAR_GAIN": "whether rows are cut; test_cut_rows.py has both",
    "transforms.cut_nests.cut_rows.COPIES_IN_LX": "whether the first rows are copied before they are read",
    "transforms.kernel_plans.shared_weights.CLEAR_GAIN": "whether columns are cut; test_shared_weights.py has both",
    "transforms.kernel_plans.shared_weights.LEAST_GAIN_US": "whether columns are cut; test_shared_weights.py has both",
    "transforms.kernel_plans.shared_weights.BUSY": "which divisions price a product; a plan considers the same",
    "transforms.kernel_plans.shared_weights._FEWEST_SHARES": "where columns are cut; test_shared_weights.py has some",
    "transforms.cut_nests.pad_rows.CLEAR_GAIN": "whether longer rows are priced; test_pad_rows.py has both",
    "transforms.cut_nests.pad_rows.GAIN": "whether rows are padded; test_pad_rows.py has both",
    "transforms.update_in_place.LEAST_BITS": "which integers may be positions of a block",
    "transforms.utils.numerics.kept_float32._SHOWN": "how many operations a message shows",
    "ops.native.collectives._SEGMENT_BYTES": "the order of a sum over ranks; test_meeting.py has both",
    "ops.composed.math.bitwise._MOST": "what bounds of integers allow; test_large_integers.py has both",
    "transforms.utils.numerics.aten_ranges.MOST_SHORT_BITS": (
        "what bounds of integers allow; test_aten_ranges.py has both"
    ),
    "ops.composed.nn.grouped_mm._MOST_PRODUCTS": "how many groups are added up at once; test_grouped_mm.py has both",
    "ops.native.resample.FIXED_BITS": "the precision of weights of bytes, which torch has",
    "ops.composed.nn.paged_attention.MOST_COMPARISONS": "when the host stores tokens; test_paged_attention.py has both",
    "ops.composed.nn.convolution._LANES": "the size of a stick, which every layout has",
    "ops.composed.nn.convolution._SMALL": "when zeros are put around an image; test_convolution.py has both",
    "ops.helpers.row_blocks._LANES": "the size of a stick, which every layout has; test_row_blocks.py has both forms",
    "ops.helpers.depthwise._LANES": "the size of a stick, which every layout has; test_depthwise.py has both forms",
    "transforms.utils.numerics.integer_origins._DATA_BITS": (
        "which integers are data, in DL16; test_integer_origins.py has both"
    ),
    "transforms.utils.numerics.integer_ranges.MOST_SHORT_BITS": "which integers start anew; test_integers.py has both",
    "transforms.kernel_to_ktdp.elementwise.LIVE_TILES": "the size of tiles in KTIR, which no bundle has",
    "transforms.kernel_to_ktdp.value_threading.TILES_SHARE": (
        "which tensors stay in a scratchpad in KTIR, which no bundle has"
    ),
    "transforms.aten_to_loop.coalesced_loops.MOVED_AT_ONCE": "the length of one step of many",
    "transforms.loop_to_kernel.device_forms._LANES": "the size of a stick, which every layout has",
    "transforms.loop_to_kernel.device_forms.MORE_BYTES": (
        "which copies of weights the host makes; test_moved_weights.py has both"
    ),
    "transforms.loop_to_kernel.layout_planner.HALF_SLICE": "zeros in padding that nothing reads",
    "transforms.loop_to_kernel.widened_order.MOST_LOOPS": "how float32 is reordered; test_widened_order.py has both",
    "transforms.loop_to_kernel.widened_order.UNIT": "the number of the dimension that no tensor has",
    "transforms.kernel_to_superdsc.descriptors.MOST_LOOPS": "labels of a file; more loops are refused",
    "transforms.aten_to_loop.loop_builder._REPEATED": "which views are copied; test_loop_builder.py has both",
    "transforms.cut_nests.part_rows.PRODUCT_ROWS": "which rows are parted; test_part_rows.py has both",
    "transforms.cut_nests.part_rows.SUM_ROWS": "which rows are parted; test_part_rows.py has both",
    "transforms.cut_nests.part_rows.MOST_LOOPS": "labels of a file; rows of nests with so many loops stay flat",
    "transforms.cut_nests.split_products.LEAST_ROWS": "which products are split; test_split_products.py has both",
    "transforms.pack_weights._LANES": "the size of a stick, which every layout has",
    "transforms.pack_weights.HALF_SLICE": "which weights are words; test_pack_weights.py has both",
    "transforms.pack_weights.LEAST_ELEMENTS": "which weights are words; test_pack_weights.py has both",
    "transforms.pack_weights.NIBBLE": "how many bits a digit of a word has; test_pack_weights.py has both",
    "transforms.cut_nests.join_lanes.LEAST_READS": "which loops are joined; test_join_lanes.py has both",
    "transforms.aten_forms.recognition.convolved_images._MOST_OPS": "how far a convolution is looked for, for speed",
    "transforms.aten_forms.part_sums._ADDED": "which products are sums of products; test_part_sums.py has both",
    "transforms.aten_forms.part_sums._LANES": "the size of a stick, which every layout has",
    "transforms.aten_forms.part_sums._MOST_PARTS": "which products are sums of products; test_part_sums.py has both",
    "transforms.aten_forms.convolve_rows._LANES": "the size of a stick, which every layout has",
    "transforms.aten_forms.convolve_patches._LANES": "the size of a stick, which every layout has",
    "transforms.aten_forms.convolve_patches._MOST_AXES": (
        "which products are convolutions; test_convolve_patches.py has both"
    ),
    "transforms.aten_forms.recognition.taken_patches._MOST_OPS": "how far patches are looked for, for speed",
    "transforms.aten_forms.put_pages.MOST_ENTRIES": "which tokens are put page by page; test_put_pages.py has both",
    "transforms.kernel_plans.shared_weights._LANES": "the size of a stick, which every layout has",
    "transforms.loop_to_kernel.settling.wider_products.DL16_LARGEST": (
        "which columns without readers go on; test_wider_products.py has both"
    ),
    "ops.composed.nn.paged_attention.MOST_QUERIES": "blocks of queries; test_paged_attention.py has one and several",
    "ops.helpers.index_steps._BITS": "how far the host shifts an integer, as torch does",
    "transforms.aten_forms.put_entries.MOST_ENTRIES": "which entries are put one by one; test_put_entries.py has both",
    "transforms.aten_forms.put_pages.MOST_PAGES": "which prompts are stored page by page; test_put_pages.py has both",
    "transforms.aten_forms.part_caches._HEADS": "the number of a dimension of every cache in pages",
    "transforms.aten_forms.put_entries._LEAST_BLOCKS": "which entries are put one by one; test_put_entries.py has both",
    "transforms.utils.stored_entries._LEAST_BITS": "which integers number places",
    "transforms.aten_forms.shift_rows._LEAST_ELEMENTS": "which rows a product moves; test_shift_rows.py has both",
    "ops.helpers.patches._LANES": "the size of a stick, which every layout has",
    "transforms.aten_forms.convolve_rows._FILLED": "which images are convolved so; test_convolve_rows.py has both",
    "transforms.aten_forms.convolve_rows._BYTES": "the size of a number in DL16",
    "transforms.aten_forms.convolve_rows._COPIES": "which patches are convolved so; test_convolve_rows.py has both",
    "transforms.aten_forms.convolve_rows._HELD": "which images are convolved so; test_convolve_rows.py has both",
    "transforms.aten_forms.convolve_rows.STICK_BYTES": "the size of a stick, which every layout has",
    "transforms.loop_to_kernel.operators.floor_division._EXACT": "integers of either size; test_integers.py has both",
    **dict.fromkeys(
        (
            *(f"ops.composed.reductions.sorting.{name}" for name in ("FEW", "LONG", "PART", "PICKED")),
            *(f"ops.composed.reductions.long_orders.{name}" for name in ("AT_ONCE", "BLOCK", "PART")),
            *(f"ops.helpers.placing.{name}" for name in ("BLOCK", "DIGIT")),
        ),
        "how long rows are ordered; test_long_orders.py and test_sorting.py have all ways",
    ),
    **dict.fromkeys(
        (f"ops.composed.indexing.long_writes.{name}" for name in ("BLOCK", "LONG", "MOST")),
        "how long rows are written; test_long_writes.py has both",
    ),
    **dict.fromkeys(
        (f"ops.composed.reductions.cumulative.{name}" for name in ("FEWEST", "IN_BLOCKS")),
        "whether sums are made in blocks; test_cumulative.py has both",
    ),
}
