// Small kernels that use what drivers are known to compile or run wrongly. `wgslice doctor` runs each on the adapter,
// and compares the results with NumPy; `quirks.json` names the reports.
//
//   workgroup g, invocation i  ->  result g * size + i
//
// None reads workgroup memory that it has not written: wgpu-native leaves any content in it.

const size = 256u; // invocations per workgroup

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;
@group(0) @binding(2) var<storage, read_write> counters: array<atomic<u32>>; // initially equal to words

var<workgroup> shared_word: u32;
var<workgroup> shared_count: atomic<u32>;
var<workgroup> shared_words: array<u32, size>;

struct Own {
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
}

// The last invocation writes workgroup memory; by that word whole workgroups exit.
@compute @workgroup_size(size)
fn uniform_load(own: Own) {
    if (own.index == size - 1u) {
        shared_word = words[own.group.x];
    }
    let word = workgroupUniformLoad(&shared_word);
    if (word % 2u == 1u) {
        return;
    }
    results[own.group.x * size + own.index] = word;
}

// The last invocation allocates a range by an atomic, and a barrier separates its write from all reads.
@compute @workgroup_size(size)
fn allocation(own: Own) {
    if (own.index == size - 1u) {
        shared_word = atomicAdd(&counters[own.group.x], size);
    }
    workgroupBarrier();
    let start = shared_word;
    if (own.index < words[own.group.x] % size) {
        results[own.group.x * size + own.index] = start + own.index;
    }
}

// A sum of all words of a workgroup, by a barrier per step.
@compute @workgroup_size(size)
fn reduction(own: Own) {
    let place = own.group.x * size + own.index;
    shared_words[own.index] = words[place];
    workgroupBarrier();
    for (var half = size / 2u; half > 0u; half /= 2u) {
        if (own.index < half) {
            shared_words[own.index] += shared_words[own.index + half];
        }
        workgroupBarrier();
    }
    results[place] = shared_words[0];
}

// A host that zeroes workgroup memory does so before the first write.
@compute @workgroup_size(size)
fn zeroing(own: Own) {
    let place = own.group.x * size + own.index;
    shared_words[size - 1u - own.index] = words[place];
    workgroupBarrier();
    results[place] = shared_words[own.index];
}

// A sum of all words of a workgroup, by atomics in workgroup memory.
@compute @workgroup_size(size)
fn workgroup_atomics(own: Own) {
    let place = own.group.x * size + own.index;
    if (own.index == 0u) {
        atomicStore(&shared_count, 0u);
    }
    workgroupBarrier();
    atomicAdd(&shared_count, words[place]);
    workgroupBarrier();
    results[place] = atomicLoad(&shared_count);
}

// The corners around a cell of a cube of 3 x 3 x 3, and the three variables of the loops at their ends.
@compute @workgroup_size(size)
fn nested_loops(own: Own) {
    let cell = vec3<i32>(vec3(own.index / 9u, own.index / 3u, own.index) % vec3(3u));
    var corners = 0u;
    var x = 0;
    var y = 0;
    var z = 0;
    for (x = -1; x < 2; x++) {
        for (y = -1; y < 2; y++) {
            for (z = -1; z < 2; z++) {
                let other = cell + vec3(x, y, z);
                if (x != 0 && y != 0 && z != 0 && all(other >= vec3(0)) && all(other < vec3(3))) {
                    corners++;
                }
            }
        }
    }
    results[own.group.x * size + own.index] = corners * 1000u + u32(x * 100 + y * 10 + z);
}

// Two halves of one word of each workgroup: 1024 and more, by ten bits of each.
@compute @workgroup_size(size)
fn broadcast_halves(own: Own) {
    let halves = unpack2x16float((words[own.group.x] & 0x03ff03ffu) | 0x64006400u);
    results[own.group.x * size + own.index] = u32(halves.x) * own.index + u32(halves.y);
}

// Words that the host writes between submissions are added up.
@compute @workgroup_size(size)
fn interleaved_writes(own: Own) {
    let place = own.group.x * size + own.index;
    results[place] += words[place];
}
