// RUN: spyre-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{unknown format 'SEN169'}}
func.func private @format(!spyre.tensor<[64] x SEN169, order [0], stick 0, hbm>)

// -----

// expected-error@+1 {{order [0, 0] does not list each dimension of a tensor of rank 2 once}}
func.func private @order(!spyre.tensor<[4, 64] x SEN169_FP16, order [0, 0], stick 1, hbm>)

// -----

// expected-error@+1 {{dimension 1 reserves 64 elements, needs 128}}
func.func private @extents(!spyre.tensor<[4, 70] x SEN169_FP16, order [1, 0], stick 1, extents [4, 64], hbm>)

// -----

// expected-error@+1 {{the stick dimension reserves 130 elements, no whole sticks of 64}}
func.func private @sticks(!spyre.tensor<[4, 70] x SEN169_FP16, order [1, 0], stick 1, extents [4, 130], hbm>)

// -----

// expected-error@+1 {{unknown memory space 'dram', expected one of hbm, lx}}
func.func private @memory(!spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, dram>)

// -----

// expected-error@+1 {{unknown element arrangement 'shuffled'}}
func.func private @arrangement(!spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm, shuffled>)

// -----

// expected-error@+1 {{extent of m is 0, expected at least 1}}
func.func private @extent() attributes {space = #spyre.space<m = 0>}

// -----

// expected-error@+1 {{m is divided over 0 cores, expected at least 1}}
func.func private @split() attributes {space = #spyre.space<m = 4 over 0>}

// -----

// expected-error@+1 {{an iteration dimension is named twice in m, m}}
func.func private @twice() attributes {space = #spyre.space<m = 4, m = 5>}
