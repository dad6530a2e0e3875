// narrow_writes: elements of 1 and 2 bytes, written into words that they share with others, or with what nobody writes.

fn write_narrow(target_element: u32, value: u32) {
    let bits = 8u * element_nbytes;
    let shift = target_element % elements_per_word() * bits;
    let mask = extractBits(0xffffffffu, 0u, bits);
    write_bits(target_element / elements_per_word(), value << shift, mask << shift);
}
