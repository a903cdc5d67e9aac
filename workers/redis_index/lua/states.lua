#!lua name=nearstream_@@
-- The index functions, first part: states, buckets, time. function_library.py appends texts.lua, families.lua,
-- labels.lua, addresses.lua and functions.lua, and replaces the names of its constants by their values. layout.py
-- describes all keys and fields.
--
-- Each call is atomic, but Redis does not roll back a function that fails halfway. Hence numbers are reserved first, a
-- state becomes reachable only when its registry entry is written, and checkpoints are written last. Whatever a failure
-- cut off is then done again by the next call.
--
-- The top level must not use a library (string, struct, ...): Redis 7.0 makes them available to calls only.

-- @TABLES@

local MAX_ENTRIES, MAX_RECORDS = 16384, 512 -- a call stops after the document with which it has read this many
local MAX_OVERFLOWS = 4096 -- buckets whose overflows are counted one by one
local HALF_HOUR_MS = 1800000
local ANSWERS_MS = 604800000 -- how long answers to removals are kept
local GROUP_GRACE_MS = 3600000 -- how much longer than its states a hash of them lives
-- One sum counts the shared anchors, bands (times BAND), weights (times WEIGHT) and rare keys (times RARE).
local BAND, WEIGHT, RARE = 2 ^ 16, 2 ^ 24, 2 ^ 42
local SPAN = 2 ^ 36 -- live numbers are closer together than this
local SHORT = 2 ^ 31 -- a lone number below this is written in digits
local DIGIT = 48 -- the code of '0'. Packed numbers begin with a lower byte, because numbers stay below 2 * 10^11.

-- One field holds a whole state, because the server walks through a listpack for each field that is read.
local RECORD = RECORD_FORMAT .. 'I2I2'
local SIZES_AT = RECORD_SIZE + 1
local ID_AT = SIZES_AT + 4

-- Numbers -------------------------------------------------------------------------------------------------

local formats = {}

-- Return the struct format of `count` packed numbers.
local function format_of(count)
  formats[count] = formats[count] or '>' .. string.rep('I5', count)
  return formats[count]
end

local function pack_number(number)
  return struct.pack('>I5', number)
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- Return packed numbers.
local function unpack_packed(packed)
  local count = #packed / NUMBER_BYTES
  local numbers = {struct.unpack(format_of(count), packed)}
  numbers[count + 1] = nil -- struct.unpack returns the position behind the last number too
  return numbers
end

-- Return the numbers of a bucket. One number is in digits, which a listpack stores in fewer bytes. Several are packed.
local function unpack_numbers(packed)
  if string.byte(packed) >= DIGIT then return {tonumber(packed)} end
  return unpack_packed(packed)
end

local function pack_numbers(numbers, first, last)
  return struct.pack(format_of(last - first + 1), unpack(numbers, first, last))
end

-- Return a number as a bucket or the registry stores it when it is alone.
local function pack_entry(number)
  return number < SHORT and decimal(number) or pack_number(number)
end

-- Return the first `last` numbers as a bucket stores them.
local function pack_entries(numbers, last)
  return last == 1 and pack_entry(numbers[1]) or pack_numbers(numbers, 1, last)
end

-- States --------------------------------------------------------------------------------------------------
-- The argument `c` of most functions is what the running call knows. `begin` creates it.

-- Whether a report spared this number from expiry.
local function is_spared(c, number)
  if c.spared_count == 0 then return false end
  if c.spared[number] == nil then
    local reported = redis.call('ZSCORE', c.tag .. SPARED_KEY, pack_number(number))
    c.spared[number] = reported and tonumber(reported) > c.spared_since or false
  end
  return c.spared[number]
end

local function is_visible(c, number)
  return number >= c.floor or is_spared(c, number)
end

local function group_key(c, number)
  return c.tag .. RECORDS_KEY .. pack_number(math.floor(number / GROUP))
end

local function spared_key(c, number)
  return c.tag .. SPARED_RECORD_KEY .. pack_number(number)
end

local function record_field(number)
  return string.char(number % GROUP)
end

local function member_field(number)
  return string.char(MEMBER_FIELD + number % GROUP)
end

local function text_field(number)
  return string.char(TEXT_FIELD + number % GROUP)
end

local function followers_field(number)
  return string.char(FOLLOWERS_FIELD + number % GROUP)
end

-- Return how long a hash of states lives after it was written.
local function lifetime(c)
  return math.floor(c.retention * 1.05) + GROUP_GRACE_MS
end

-- Return the keys of the hashes that hold a state: that of its group, its own one if it was spared late, or both.
local function state_keys(c, number)
  if not is_spared(c, number) then return number >= c.floor and {group_key(c, number)} or {} end
  local own = spared_key(c, number)
  if redis.call('HEXISTS', own, record_field(number)) == 0 then return {group_key(c, number)} end
  return number >= c.floor and {group_key(c, number), own} or {own}
end

local patched
do
  -- Return a number in unsigned LEB128, and where the next value begins.
  local function unpack_varint(packed, at)
    local number, unit, byte = 0, 1, string.byte(packed, at)
    while byte > 127 do
      number, unit, at = number + byte % 128 * unit, unit * 128, at + 1
      byte = string.byte(packed, at)
    end
    return number + byte * unit, at + 1
  end

  -- Return the text into which a patch turns another one: see text_patch.py.
  function patched(other, patch)
    if patch == '' then return other end
    local parts, at, from = {}, 1, 1
    local size, jump
    while at <= #patch do
      size, at = unpack_varint(patch, at)
      parts[#parts + 1] = string.sub(patch, at, at + size - 1)
      at, from = at + size, from + size
      if at <= #patch then
        size, at = unpack_varint(patch, at)
        jump, at = unpack_varint(patch, at)
        from = from + (jump % 2 == 0 and jump / 2 or -(jump + 1) / 2)
        parts[#parts + 1] = string.sub(other, from, from + size - 1)
        from = from + size
      end
    end
    return table.concat(parts)
  end
end

-- Return the fields of a record. `superseded_by` is 0 for the current state of a document, `owner` for a record that has
-- its text itself. The text of a record that has a patch may be an argument.
local function parse_record(record, text)
  local prev, partition, offset, observed, version, bands, anchors, doc, id_size, rest_size = struct.unpack(RECORD, record)
  local superseded_by, id_at, owner = 0, ID_AT, 0
  if id_size >= SUPERSEDED then
    superseded_by, id_at, id_size = struct.unpack('>I5', record, ID_AT), ID_AT + NUMBER_BYTES, id_size - SUPERSEDED
  end
  if id_size >= SHARED then
    owner, id_size = struct.unpack('>I5', record, #record - NUMBER_BYTES + 1), id_size - SHARED
  end
  return {
    record = record, prev = prev, partition = partition, offset = offset, observed = observed, version = version,
    bands = bands, anchors = anchors, doc = doc, id_size = id_size, rest_size = rest_size, id_at = id_at,
    superseded_by = superseded_by, owner = owner, text = text,
  }
end

-- Return what a record has at its end: its text, or a patch and the number of the state whose text that turns into its own.
local function ending_of(state)
  return string.sub(state.record, state.id_at + state.id_size + state.rest_size)
end

-- Return the patch of a record without a text of its own.
local function patch_of(state)
  return string.sub(ending_of(state), 1, -NUMBER_BYTES - 1)
end

local function text_of(state)
  if not state.text then
    state.text = state.owner == 0 and ending_of(state) or patched(state.owned_text, patch_of(state))
  end
  return state.text
end

-- Return a record with other sizes, and with another ending.
local function with_ending(state, flags, by, ending)
  return string.sub(state.record, 1, SIZES_AT - 1) .. struct.pack('>I2I2', flags + state.id_size, state.rest_size)
    .. (by > 0 and pack_number(by) or '')
    .. string.sub(state.record, state.id_at, state.id_at + state.id_size + state.rest_size - 1) .. ending
end

-- Return the record of a state with its text.
local function whole_record(state)
  if state.owner == 0 then return state.record end
  return with_ending(state, state.superseded_by > 0 and SUPERSEDED or 0, state.superseded_by, text_of(state))
end

-- Return the record of a state with a patch and the number of the state whose text that turns into its own.
local function shared_record(state, patch, owner)
  local flags = SHARED + (state.superseded_by > 0 and SUPERSEDED or 0)
  return with_ending(state, flags, state.superseded_by, patch .. pack_number(owner))
end

-- Return the record of a state with the number that superseded it.
local function superseded_record(state, by)
  return with_ending(state, SUPERSEDED + (state.owner > 0 and SHARED or 0), by, ending_of(state))
end

-- Return the text that this number owns, also if its state is gone, or nil.
local function owned_text(c, number)
  local known = c.states[number]
  if known and known.record then return text_of(known) end
  local got = redis.call('HMGET', group_key(c, number), record_field(number), text_field(number))
  return got[1] and text_of(parse_record(got[1])) or got[2] or nil
end

-- Return the state of this number, with its packed member if it has one: see families.lua. It has no record if it was removed, has expired or never existed.
local function read_state(c, number)
  local state = c.states[number]
  if state then return state end
  state = {superseded_by = 0}
  if is_visible(c, number) then
    c.reads = c.reads + 1
    local key = number >= c.floor and group_key(c, number) or spared_key(c, number)
    local got = redis.call('HMGET', key, record_field(number), member_field(number))
    if number < c.floor and not got[1] then
      got = redis.call('HMGET', group_key(c, number), record_field(number), member_field(number))
    end
    if got[1] then state = parse_record(got[1]) end
    if got[1] and state.owner > 0 then
      state.owned_text = owned_text(c, state.owner)
      if not state.owned_text then state = {superseded_by = 0} end
    end
    state.packed_member = got[2] or nil
  end
  c.states[number] = state
  return state
end

-- Write a new state with its text, which its record need not have. `...` are further fields and values for its group.
local function write_state(c, number, record, text, ...)
  local key = group_key(c, number)
  redis.call('HSET', key, record_field(number), record, ...)
  if c.retention > 0 and c.renewed ~= key then
    redis.call('PEXPIRE', key, lifetime(c))
    c.renewed = key
  end
  c.states[number] = parse_record(record, text)
end

local function rewrite_state(c, number, record)
  local keys, own = state_keys(c, number), group_key(c, number)
  local former = c.states[number] or {}
  local state = parse_record(record, former.record and text_of(former))
  for i = 1, #keys do
    redis.call('HSET', keys[i], record_field(number), keys[i] == own and record or whole_record(state))
  end
  state.packed_member = former.packed_member
  c.states[number] = state
end

-- Return a state with another number before it.
local function with_previous(state, prev)
  return parse_record(pack_number(prev) .. string.sub(state.record, NUMBER_BYTES + 1), text_of(state))
end

local function set_previous(c, number, prev)
  rewrite_state(c, number, with_previous(read_state(c, number), prev).record)
end

local function supersede(c, number, by)
  rewrite_state(c, number, superseded_record(read_state(c, number), by))
end

-- Return -1, 0 or 1. Bytes are compared one by one because Lua compares strings by locale.
local function compare_bytes(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other and -1 or 1 end
  end
  return #a == #b and 0 or #a < #b and -1 or 1
end

local INTEGERS = { -- formats of the integers of MessagePack by their first byte. The others are one byte long.
  [0xCC] = '>I1', [0xCD] = '>I2', [0xCE] = '>I4', [0xCF] = '>I8',
  [0xD0] = '>i1', [0xD1] = '>i2', [0xD2] = '>i4', [0xD3] = '>i8',
}

-- Return a packed integer, and where the next value begins.
local function unpack_integer(packed, at)
  local first = string.byte(packed, at)
  if INTEGERS[first] then return struct.unpack(INTEGERS[first], packed, at + 1) end
  return first < 128 and first or first - 256, at + 1
end

-- Return the partition and the offset on `documents` of a state. Without a record there, the partition is -1. They are
-- the first values of the array that record.py writes behind the id, which cmsgpack cannot read.
local function origin_of(state)
  local partition, offset_at = unpack_integer(state.record, state.id_at + state.id_size + 1)
  return partition, (unpack_integer(state.record, offset_at))
end

-- Whether state `a` of a document is older than state `b`, as `Signature.order` says. The whole order is needed seldom.
local function was_observed_before(a, b)
  if a.observed ~= b.observed then return a.observed < b.observed end
  local partition, offset = origin_of(a)
  local other_partition, other_offset = origin_of(b)
  if partition ~= other_partition then return partition < other_partition end
  if offset ~= other_offset then return offset < other_offset end
  return compare_bytes(a.version, b.version) < 0
end

-- Return the name of a document inside its registry chunk: the hash of its key without the bytes that gave the chunk.
local function registry_field(doc)
  return string.sub(doc, CHUNK_BYTES + 1)
end

-- Return the number of the current state of a document, or 0. `doc` is the hash of its key.
local function current_number(c, chunk, doc)
  local packed = redis.call('HGET', c.tag .. REGISTRY_KEY .. chunk, registry_field(doc))
  if not packed then return 0 end
  local number = unpack_numbers(packed)[1]
  return read_state(c, number).doc == doc and number or 0
end

-- Buckets -------------------------------------------------------------------------------------------------
-- `kind` is one of c.kinds. `d` is the document of an admission, which `parse_admission` creates.

-- Return the numbers that are visible, and whether some are not.
local function visible_numbers(c, numbers)
  if numbers[1] >= c.floor then return numbers, false end
  local visible = {}
  for i = 1, #numbers do
    if is_visible(c, numbers[i]) then visible[#visible + 1] = numbers[i] end
  end
  return visible, #visible < #numbers
end

-- Whether this new field is the one in about 8 that causes a sweep of its chunk. Its last byte may be a digit.
local function causes_sweep(field)
  return (string.byte(field, -1) + 5 * string.byte(field, -2)) % 8 == 0
end

-- Remove expired numbers from all buckets of a chunk. `spills` is true for anchors.
local function sweep_chunk(c, spills, chunk)
  local fields = redis.call('HGETALL', chunk)
  for i = 1, #fields, 2 do
    local numbers = unpack_numbers(fields[i + 1])
    c.entries = c.entries + #numbers
    -- An anchor bucket with all its heads may have newer numbers in its spill. The next admission moves them up.
    if not (spills and #numbers == ANCHOR_HEADS) then
      local visible, some_expired = visible_numbers(c, numbers)
      if #visible == 0 then
        redis.call('HDEL', chunk, fields[i])
      elseif some_expired then
        redis.call('HSET', chunk, fields[i], pack_entries(visible, #visible))
      end
    end
  end
end

-- Return a bucket as it is stored, or nil.
local function packed_bucket(c, kind, chunk, field)
  local packed = redis.call('HGET', kind.prefix .. chunk, field)
  if packed and kind.spills and #packed == NUMBER_BYTES * ANCHOR_HEADS and c.spill > 0 then
    return packed .. redis.call('GETRANGE', c.tag .. SPILL_KEY .. chunk .. field, -NUMBER_BYTES * c.spill, -1)
  end
  return packed
end

-- Return the visible entries of a packed bucket, oldest first, and whether some have expired.
local function entries_of(c, packed)
  local entries = unpack_numbers(packed)
  c.entries = c.entries + #entries
  return visible_numbers(c, entries)
end

-- Return the time and the first number of a mark, or nil if there is no such mark.
local function mark_at(c, index)
  local ms, number = string.match(redis.call('LINDEX', c.tag .. MARKS_KEY, index) or '', '(%d+):(%d+)')
  return tonumber(ms), tonumber(number)
end

-- Return the first number that was given since the last mark.
local function first_of_step(c)
  c.newest = c.newest or select(2, mark_at(c, -1))
  return c.newest
end

-- Return how long a spill lives after it was written: a step of the marks longer than the retention, so that only the
-- first entry of each step has to prolong its life.
local function life_of_spill(c)
  return c.retention + math.floor(c.retention / MARKS)
end

local function write_spill(c, key, packed)
  if packed == '' then
    redis.call('DEL', key)
  elseif c.retention > 0 then
    redis.call('SET', key, packed, 'PX', life_of_spill(c))
  else
    redis.call('SET', key, packed)
  end
end

-- Replace the content of a bucket by these entries.
local function rewrite_bucket(c, kind, chunk, field, entries)
  local count = #entries
  if kind.spills then
    local heads = math.min(count, ANCHOR_HEADS)
    local spilled = count > heads and pack_numbers(entries, heads + 1, count) or ''
    write_spill(c, c.tag .. SPILL_KEY .. chunk .. field, spilled)
    count = heads
  end
  if count == 0 then
    redis.call('HDEL', kind.prefix .. chunk, field)
  else
    redis.call('HSET', kind.prefix .. chunk, field, pack_entries(entries, count))
  end
end

local add_entry
do
  -- Whether a full lineage bucket drops state `a` rather than `b`: removed states first, then the one observed least
  -- recently, ties by id.
  local function is_dropped_before(a, b)
    if not a.record or not b.record then return not a.record and b.record end
    if a.observed ~= b.observed then return a.observed < b.observed end
    return compare_bytes(string.sub(a.record, a.id_at, a.id_at + a.id_size - 1),
      string.sub(b.record, b.id_at, b.id_at + b.id_size - 1)) < 0
  end

  local function drop_one(c, entries)
    local at = 1
    for i = 2, #entries do
      if is_dropped_before(read_state(c, entries[i]), read_state(c, entries[at])) then at = i end
    end
    table.remove(entries, at)
  end

  -- Return the entries of a content with d.number behind them.
  local function grown(d, content)
    local entries = {unpack(content.entries)}
    entries[#entries + 1] = d.number
    return entries
  end

  -- Add d.number to an anchor bucket: to its heads while there is room, else to its spill.
  local function add_to_anchor(c, d, bucket)
    local kind, chunk, field, content = bucket.kind, bucket.chunk, bucket.field, bucket.content
    if content.some_expired then return rewrite_bucket(c, kind, chunk, field, grown(d, content)) end
    if #content.entries < ANCHOR_HEADS then
      content.packed_grown = content.packed_grown or pack_entries(grown(d, content), #content.entries + 1)
      redis.call('HSET', kind.prefix .. chunk, field, content.packed_grown)
      return
    end
    if c.spill == 0 then return end
    local spill, count = c.tag .. SPILL_KEY .. chunk .. field, #content.entries
    if redis.call('APPEND', spill, pack_number(d.number)) > 2 * NUMBER_BYTES * c.spill then
      write_spill(c, spill, redis.call('GETRANGE', spill, -NUMBER_BYTES * c.spill, -1))
    elseif c.retention > 0 and (count == ANCHOR_HEADS or content.entries[count] < first_of_step(c)) then
      redis.call('PEXPIRE', spill, life_of_spill(c))
    end
  end

  -- Add d.number to a bucket of d.existing. A full bucket loses its oldest entry behind the heads. A full lineage bucket,
  -- which has no heads, loses the one that `is_dropped_before` ranks first.
  function add_entry(c, d, bucket)
    local kind, chunk, field = bucket.kind, bucket.chunk, bucket.field
    if #bucket.content.entries >= kind.cap then
      local name = kind.letter .. chunk .. field
      c.overflows[name] = (c.overflows[name] or 0) + 1
    end
    if kind.spills then return add_to_anchor(c, d, bucket) end
    local entries = grown(d, bucket.content)
    if #entries > kind.cap then
      if kind.heads > 0 then table.remove(entries, kind.heads + 1) else drop_one(c, entries) end
    end
    redis.call('HSET', kind.prefix .. chunk, field, pack_entries(entries, #entries))
  end
end

-- Return the weight of a key that `count` earlier documents share.
local function weight_of(count)
  return math.floor(UNIT / math.sqrt(count))
end

-- Count the entries below the number `own` as neighbours that share `times` buckets of this kind: sums of shared keys in
-- seen.counts, flags in seen.flags.
local function tally(seen, entries, own, kind, times)
  local below = #entries
  while below > 0 and entries[below] >= own do below = below - 1 end
  local full = below >= kind.cap
  if full then seen.full = seen.full + times end
  if below > kind.heads or full then seen.may_change = true end
  local bits = kind.bits + (full and IN_FULL_BUCKET or 0)
  local counts, flags = seen.counts, seen.flags
  local count = kind.count + kind.anchors * weight_of(below) * WEIGHT
  if kind.anchors > 0 and below < RARE_BELOW then count = count + RARE end
  count = count * times
  for i = 1, below do
    local number = entries[i]
    counts[number] = (counts[number] or 0) + count
    if bits > 0 and flags[number] ~= bits then flags[number] = bit.bor(flags[number] or 0, bits) end
  end
end

-- Note a bucket among those to be tallied, and return its content, or nil without a bucket. Buckets of copies, and those
-- of a frame, have equal entries, so these are unpacked once, and tallied once with the number of their buckets.
local function visit(c, d, kind, chunk, field)
  local packed = packed_bucket(c, kind, chunk, field)
  if not packed then return nil end
  local contents = d.seen.contents
  local content = contents[packed]
  if not content then
    local entries, some_expired = entries_of(c, packed)
    content = {entries = entries, some_expired = some_expired, times = {}}
    contents[packed] = content
  end
  content.times[kind] = (content.times[kind] or 0) + 1
  return content
end

-- Tally what the visited buckets held when d.number was given.
local function tally_visited(d)
  for _, content in pairs(d.seen.contents) do
    for kind, times in pairs(content.times) do tally(d.seen, content.entries, d.number, kind, times) end
  end
end

-- Create a bucket that holds d.number alone. If it exists, visit it and note it in d.existing, to be entered later. Each
-- call of the server takes time, so this first tries what was right for most buckets of the document so far: to read an
-- existing bucket, or to create a new one.
local function offer(c, d, kind, chunk, field)
  local key, content = kind.prefix .. chunk, nil
  if d.most_exist > 0 then content = visit(c, d, kind, chunk, field) end
  if not content and redis.call('HSETNX', key, field, d.entry) == 1 then
    d.most_exist = d.most_exist - 1
    if c.floor > 1 and causes_sweep(field) then sweep_chunk(c, kind.spills, key) end
    return
  end
  d.most_exist = d.most_exist + 1
  content = content or visit(c, d, kind, chunk, field) or {entries = {}}
  d.existing[#d.existing + 1] = {kind = kind, chunk = chunk, field = field, content = content}
end

-- Remove the numbers in d.seen.gone from a bucket.
local function remove_gone(c, d, kind, chunk, field)
  local packed, left = packed_bucket(c, kind, chunk, field), {}
  local entries = packed and entries_of(c, packed) or {}
  for i = 1, #entries do
    if not d.seen.gone[entries[i]] then left[#left + 1] = entries[i] end
  end
  if #left < #entries then rewrite_bucket(c, kind, chunk, field, left) end
end

-- Return the chunks and fields of the buckets of a document: of digest and lineage, or those of bands and anchors.
local function words_of(d, first, count)
  return {struct.unpack(string.rep(KEY_FORMAT, count), d.blob, ADMISSION_SIZE + 1 + KEY_SIZE * first)}
end

local function digest_bucket(c, d, act)
  local words = words_of(d, 0, 1)
  act(c, d, c.kinds.digest, words[1], words[2])
end

local function lineage_bucket(c, d, act)
  local words = words_of(d, 1, 1)
  if bit.band(d.flags, HAS_LINEAGE) > 0 then act(c, d, c.kinds.lineage, words[1], words[2]) end
  c.keys = c.keys + 2
end

-- Call `act` for the buckets that a copy may leave out: those of bands and anchors.
local function each_text_bucket(c, d, act)
  local words = words_of(d, 2, d.bands + d.anchors)
  local kind, first_anchor = c.kinds.band, 2 * d.bands + 1
  for at = 1, 2 * (d.bands + d.anchors), 2 do
    if at == first_anchor then kind = c.kinds.anchor end
    act(c, d, kind, words[at], words[at + 1])
  end
  c.keys = c.keys + d.bands + d.anchors
end

-- Call `act` for the bucket of each key of a document.
local function each_bucket(c, d, act)
  digest_bucket(c, d, act)
  lineage_bucket(c, d, act)
  each_text_bucket(c, d, act)
end

local function new_seen()
  return {contents = {}, counts = {}, flags = {}, gone = {}, full = 0, may_change = false}
end

-- Find the neighbours of a document in all its buckets.
local function gather(c, d)
  d.seen = new_seen()
  each_bucket(c, d, visit)
  tally_visited(d)
  return d.seen
end

-- Time ----------------------------------------------------------------------------------------------------

-- Return the server's time in milliseconds since 1970.
local function clock()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

-- Return the first number given within the last `age` ms. Numbers between two marks were given within one step of the
-- first of these marks.
local function first_within(c, age)
  local latest = c.now - age - math.floor(c.retention / MARKS)
  local low, high = -1, 2 * MARKS
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if (mark_at(c, middle) or c.now) <= latest then low = middle else high = middle end
  end
  if low < 0 then return c.floor end
  local _, number = mark_at(c, high)
  return number or c.last + 1
end

-- Whether more than half of the retention has passed since this number was given.
local function is_aging(c, number)
  if c.retention == 0 then return false end
  c.half = c.half or first_within(c, math.floor(c.retention / 2))
  return number < c.half
end

-- Set the time of the call: add a mark if the last one is a step old, and raise the floor above all numbers that were
-- given a retention ago.
local function advance(c, now)
  c.now = math.max(now, c.mark)
  if c.retention == 0 then return end
  local step = math.floor(c.retention / MARKS)
  if c.mark < 0 or c.now - c.mark >= step then
    c.mark = c.now
    redis.call('RPUSH', c.tag .. MARKS_KEY, decimal(c.now) .. ':' .. decimal(c.last + 1))
    redis.call('HSET', c.facts, 'mark', decimal(c.now))
    if c.spared_count > 0 then
      redis.call('ZREMRANGEBYSCORE', c.tag .. SPARED_KEY, '-inf', decimal(c.now - c.retention))
    end
  end
  while (mark_at(c, 0) or c.now) + step <= c.now - c.retention do
    local _, number = mark_at(c, 1)
    if not number then break end
    c.floor = number
    redis.call('HSET', c.facts, 'floor', decimal(number))
    redis.call('LPOP', c.tag .. MARKS_KEY)
  end
  c.states, c.spared = {}, {}
end

-- Keep an aging state for another retention. It keeps its number, because its bucket keys are not known here.
local function copy_spared(c, number)
  local keys = state_keys(c, number)
  local own = spared_key(c, number)
  if keys[1] ~= own then
    redis.call('DEL', own)
    local state = read_state(c, number)
    if state.packed_member then redis.call('HSET', own, member_field(number), state.packed_member) end
    if state.record then redis.call('HSET', own, record_field(number), whole_record(state)) end
  end
  redis.call('PEXPIRE', own, lifetime(c))
end

-- Keep a state for another retention, which begins at the last mark. A state that is not aging yet stays in the hash of
-- its group, whose life is prolonged, with that of the group that has its text.
local function spare_now(c, number)
  if c.retention == 0 or c.mark < 0 then return end
  -- A number given since the last mark lives as long without this.
  if number >= first_of_step(c) then return end
  local before = redis.call('ZSCORE', c.tag .. SPARED_KEY, pack_number(number))
  if before and tonumber(before) == c.mark then return end
  if is_aging(c, number) then
    copy_spared(c, number)
  else
    redis.call('PEXPIRE', group_key(c, number), lifetime(c))
    local owner = read_state(c, number).owner or 0
    if owner > 0 then redis.call('PEXPIRE', group_key(c, owner), lifetime(c)) end
  end
  redis.call('ZADD', c.tag .. SPARED_KEY, decimal(c.mark), pack_number(number))
  if c.has_labels then
    redis.call('PEXPIRE', c.tag .. LABELS_KEY .. (read_state(c, number).doc or ''), lifetime(c))
    redis.call('PEXPIRE', c.tag .. LABELLED_KEY .. pack_number(number), lifetime(c))
  end
  if not before then
    if c.spared_count >= KEPT_CAP then redis.call('ZREMRANGEBYRANK', c.tag .. SPARED_KEY, 0, -KEPT_CAP - 1) end
    c.spared_count = c.spared_count + 1
  end
  c.spared[number] = true
end
