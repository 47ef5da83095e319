'use strict';
const heap = () => host.memory();
module.exports = {
  getHeapStatistics: () => { const [rss, total, used] = heap(); return { total_heap_size: total, total_heap_size_executable: 0, total_physical_size: rss, total_available_size: 512 << 20, used_heap_size: used, heap_size_limit: 512 << 20,
    malloced_memory: total, peak_malloced_memory: rss, does_zap_garbage: 0, number_of_native_contexts: 1, number_of_detached_contexts: 0, total_global_handles_size: 0, used_global_handles_size: 0, external_memory: 0 }; },
  getHeapSpaceStatistics: () => [], setFlagsFromString() {}, cachedDataVersionTag: () => 0, serialize: (v) => Buffer.from(JSON.stringify(v)), deserialize: (b) => JSON.parse(b.toString()),
};
