#!lua name=nearstream_@@
-- The index on the server: states and buckets. index_calls.lua is joined to this file; the layout is told in
-- workers/redis_index.py. Each call is atomic, but a script error is not rolled back. Hence numbers are reserved first,
-- a state is reached only when its registry entry is written, and checkpoints come last: what was cut off is done again.
-- No library (string, struct) may be touched while this loads; Redis 7.0 lends them to calls only.

local HEADS, BAND_CAP, ANCHOR_HEADS, LINEAGE_CAP = 6, 12, 12, 8
local REPORTS_CAP, WALK, READS, MARKS = 64, 64, 256, 256
local KEPT_CAP = 65536
local MAX_KEYS, MAX_ENTRIES, MAX_RECORDS, MAX_OVERFLOWS = 1024, 16384, 512, 4096
local BEST, UNIT, BAND_ANCHORS, ENOUGH, WEIGHT_MAX = 5, 100, 4, 2, 65535 -- as in streams/index.py
local BAND, WEIGHT = 2 ^ 16, 2 ^ 24 -- of shared keys one number holds the anchors, the bands, their weight
local LATE_MS, KEPT_MS, GROUP_GRACE_MS = 3600000, 604800000, 3600000
local ANSWERS, LATEST = 256, 64 -- offsets in a hash of answers; such hashes of a partition that outlast any outage
local SPAN = 2 ^ 36 -- live numbers lie closer together than this
local DIGIT, SHORT = 48, 2 ^ 31 -- no packed number begins with a digit: numbers stay below 2 * 10^11
local NOWHERE = 65535

-- prev, partition, offset, observed at + 2^46, version, bands, anchors, keyed hash of the document key, length of the
-- id; then, if DEAD is added to that, the number from which on the state is superseded; the id; the rest of the
-- signature. One field holds it all, because each look into a long listpack walks through it.
local RECORD, SIZE_AT, ID_AT, DEAD = '>I5I2I6I6c8BI2c9I2', 40, 42, 32768
-- registry chunk, hash, flags, partition, offset, previous + 1, observed, version, bands, anchors; then digest, lineage,
-- bands, anchors: chunk (4) and field; then the record from the length of the id on. A field of 7 digits is kept as a
-- number of 3 bytes, which is compared faster than a string.
local ADMISSION = '>c4c9BI2I6I6I6c8BI2'
local ADMISSION_SIZE, KEY, KEY_SIZE = 45, 'c4c7', 11
local IS_REMOVAL, HAS_POSITION, HAS_LINEAGE, IS_COVER = 1, 2, 4, 8
local ANSWER, CANDIDATE, CANDIDATE_SIZE = '>I2B', '>I5BI2B', 9
local CUT, HAS_PREVIOUS, COMPLETE, FOUND = 1, 2, 4, 8
local BY_DIGEST, BY_LINEAGE, IN_FULL = 1, 2, 4

local formats = {}

local function format_of(count)
  formats[count] = formats[count] or '>' .. string.rep('I5', count)
  return formats[count]
end

local function pack5(number)
  return struct.pack('>I5', number)
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- One number is written in digits, which a listpack keeps in fewer bytes; several are packed.
local function unpack_numbers(packed)
  if string.byte(packed) >= DIGIT then return {tonumber(packed)} end
  local count = #packed / 5
  local numbers = {struct.unpack(format_of(count), packed)}
  numbers[count + 1] = nil -- the position that struct.unpack adds
  return numbers
end

local function pack_numbers(numbers, first, last)
  return struct.pack(format_of(last - first + 1), unpack(numbers, first, last))
end

local function entry_of(number)
  return number < SHORT and decimal(number) or pack5(number)
end

local function pack_entries(numbers, last)
  return last == 1 and entry_of(numbers[1]) or pack_numbers(numbers, 1, last)
end

-- States --------------------------------------------------------------------------------------------------

-- Whether a report has spared this number from the floor.
local function is_spared(c, number)
  if c.kept == 0 then return false end
  if c.spared[number] == nil then
    local seen = redis.call('ZSCORE', c.t .. 's', pack5(number))
    c.spared[number] = seen and tonumber(seen) > c.spared_since or false
  end
  return c.spared[number]
end

local function is_visible(c, number)
  return number >= c.floor or is_spared(c, number)
end

local function group_of(c, number)
  return c.t .. 'r' .. pack5(math.floor(number / 16))
end

-- The hashes that hold a state: its group, its own one if it is spared, or both.
local function homes(c, number)
  local keys = {}
  if number >= c.floor then keys[1] = group_of(c, number) end
  if is_spared(c, number) then keys[#keys + 1] = c.t .. 'k' .. pack5(number) end
  return keys, number % 16
end

local function parse(record)
  local prev, partition, offset, observed, version, bands, anchors, doc, id_size = struct.unpack(RECORD, record)
  local dead, id_at = 0, ID_AT
  if id_size >= DEAD then
    dead, id_at, id_size = struct.unpack('>I5', record, ID_AT), ID_AT + 5, id_size - DEAD
  end
  return {
    record = record, prev = prev, partition = partition, offset = offset, observed = observed, version = version,
    bands = bands, anchors = anchors, doc = doc, id_size = id_size, id_at = id_at, dead = dead,
  }
end

-- The record of this state, superseded from a number on.
local function superseded(state, by)
  return string.sub(state.record, 1, SIZE_AT - 1) .. struct.pack('>I2I5', DEAD + state.id_size, by)
    .. string.sub(state.record, state.id_at)
end

-- The state of this number; without a record if it was removed, has expired or never was.
local function read(c, number)
  local state = c.states[number]
  if state then return state end
  state = {dead = 0}
  if is_visible(c, number) then
    c.reads = c.reads + 1
    local key = number >= c.floor and group_of(c, number) or c.t .. 'k' .. pack5(number)
    local record = redis.call('HGET', key, string.char(number % 16))
    if record then state = parse(record) end
  end
  c.states[number] = state
  return state
end

-- A new state; `more` are further fields of its group.
local function write_state(c, number, record, ...)
  local key = group_of(c, number)
  redis.call('HSET', key, string.char(number % 16), record, ...)
  if c.retention > 0 and c.renewed ~= key then
    redis.call('PEXPIRE', key, math.floor(c.retention * 1.05) + GROUP_GRACE_MS)
    c.renewed = key
  end
  c.states[number] = parse(record)
end

local function rewrite_state(c, number, record)
  local keys, slot = homes(c, number)
  for i = 1, #keys do redis.call('HSET', keys[i], string.char(slot), record) end
  c.states[number] = parse(record)
end

local function link(c, number, prev)
  rewrite_state(c, number, pack5(prev) .. string.sub(read(c, number).record, 6))
end

local function bury(c, number, by)
  rewrite_state(c, number, superseded(read(c, number), by))
end

-- -1, 0 or 1: bytes are compared one by one because Lua compares strings by locale.
local function order_of(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other and -1 or 1 end
  end
  return #a == #b and 0 or #a < #b and -1 or 1
end

-- Whether a was observed before b.
local function is_before(a, b)
  if a.observed ~= b.observed then return a.observed < b.observed end
  return order_of(a.version, b.version) < 0
end

local function registered(c, chunk, doc)
  local packed = redis.call('HGET', c.t .. 'i' .. chunk, string.sub(doc, 5))
  if not packed then return 0 end
  local number = unpack_numbers(packed)[1]
  return read(c, number).doc == doc and number or 0
end

-- Buckets -------------------------------------------------------------------------------------------------

-- The numbers that are still visible, and whether some are not.
local function living(c, numbers)
  if numbers[1] >= c.floor then return numbers, false end
  local alive = {}
  for i = 1, #numbers do
    if is_visible(c, numbers[i]) then alive[#alive + 1] = numbers[i] end
  end
  return alive, #alive < #numbers
end

-- Whether a new field is one of about 16 that bring a sweep of their chunk; its last byte may be a digit.
local function is_swept(field)
  return (string.byte(field, -1) + 5 * string.byte(field, -2)) % 16 == 0
end

-- Takes what has expired out of a chunk.
local function sweep(c, spills, chunk)
  local fields = redis.call('HGETALL', chunk)
  for i = 1, #fields, 2 do
    local numbers = unpack_numbers(fields[i + 1])
    c.entries = c.entries + #numbers
    -- Behind full heads of an anchor newer numbers may stand: the next admission moves them up.
    if not (spills and #numbers == ANCHOR_HEADS) then
      local alive, expired = living(c, numbers)
      if #alive == 0 then
        redis.call('HDEL', chunk, fields[i])
      elseif expired then
        redis.call('HSET', chunk, fields[i], pack_entries(alive, #alive))
      end
    end
  end
end

-- Living entries of a bucket, oldest first, and whether some had expired; nil for no bucket.
local function load(c, kind, chunk, field)
  local packed = redis.call('HGET', kind.prefix .. chunk, field)
  if not packed then return nil end
  if kind.spills and #packed == 5 * ANCHOR_HEADS and c.spill > 0 then
    packed = packed .. redis.call('GETRANGE', c.t .. 'w' .. chunk .. field, -5 * c.spill, -1)
  end
  local entries = unpack_numbers(packed)
  c.entries = c.entries + #entries
  return living(c, entries)
end

local function write_spill(c, key, packed)
  if packed == '' then
    redis.call('DEL', key)
  elseif c.retention > 0 then
    redis.call('SET', key, packed, 'PX', c.retention)
  else
    redis.call('SET', key, packed)
  end
end

-- A bucket with these entries only.
local function rewrite(c, kind, chunk, field, entries)
  local count = #entries
  if kind.spills then
    local heads = math.min(count, ANCHOR_HEADS)
    write_spill(c, c.t .. 'w' .. chunk .. field, count > heads and pack_numbers(entries, heads + 1, count) or '')
    count = heads
  end
  if count == 0 then
    redis.call('HDEL', kind.prefix .. chunk, field)
  else
    redis.call('HSET', kind.prefix .. chunk, field, pack_entries(entries, count))
  end
end

-- Whether one state goes from a full lineage bucket before another: removed, else longest not observed, else by id.
local function goes_before(a, b)
  if not a.record or not b.record then return not a.record and b.record end
  if a.observed ~= b.observed then return a.observed < b.observed end
  return order_of(string.sub(a.record, a.id_at, a.id_at + a.id_size - 1),
    string.sub(b.record, b.id_at, b.id_at + b.id_size - 1)) < 0
end

local function drop_oldest(c, entries)
  local at = 1
  for i = 2, #entries do
    if goes_before(read(c, entries[i]), read(c, entries[at])) then at = i end
  end
  table.remove(entries, at)
end

local function add_anchor(c, kind, chunk, field, entries, expired, own)
  if expired or #entries < ANCHOR_HEADS then
    entries[#entries + 1] = own
    if expired then return rewrite(c, kind, chunk, field, entries) end
    redis.call('HSET', kind.prefix .. chunk, field, pack_entries(entries, #entries))
    return
  end
  if c.spill == 0 then return end
  local spill = c.t .. 'w' .. chunk .. field
  if redis.call('APPEND', spill, pack5(own)) > 10 * c.spill then
    write_spill(c, spill, redis.call('GETRANGE', spill, -5 * c.spill, -1))
  elseif c.retention > 0 then
    redis.call('PEXPIRE', spill, c.retention)
  end
end

local function add(c, kind, chunk, field, entries, expired, own)
  if #entries >= kind.cap then
    local bucket = kind.letter .. chunk .. field
    c.overflows[bucket] = (c.overflows[bucket] or 0) + 1
  end
  if kind.spills then return add_anchor(c, kind, chunk, field, entries, expired, own) end
  entries[#entries + 1] = own
  if #entries > kind.cap then
    if kind.heads > 0 then table.remove(entries, kind.heads + 1) else drop_oldest(c, entries) end
  end
  redis.call('HSET', kind.prefix .. chunk, field, pack_entries(entries, #entries))
end

-- What a key counts by which so many earlier documents are found.
local function weight_of(count)
  return math.floor(UNIT / math.sqrt(count))
end

local function tally(seen, entries, own, kind)
  local below = #entries
  while below > 0 and entries[below] >= own do below = below - 1 end
  local full = below >= kind.cap
  if full then seen.full = seen.full + 1 end
  if below > kind.heads or full then seen.may_change = true end
  local bits = kind.bits + (full and IN_FULL or 0)
  local counts, flags = seen.counts, seen.flags
  local count = kind.count + kind.anchors * weight_of(below) * WEIGHT
  for i = 1, below do
    local number = entries[i]
    counts[number] = (counts[number] or 0) + count
    if bits > 0 then flags[number] = bit.bor(flags[number] or 0, bits) end
  end
end

-- What a bucket held as of d.number; with d.enters the number is added to it.
local function visit(c, d, kind, chunk, field)
  local entries, expired = load(c, kind, chunk, field)
  if not entries then return end
  tally(d.seen, entries, d.number, kind)
  if d.enters then add(c, kind, chunk, field, entries, expired, d.number) end
end

-- Opens a new bucket with the number alone, or visits the one that is there.
local function enter(c, d, kind, chunk, field)
  local key = kind.prefix .. chunk
  if redis.call('HSETNX', key, field, d.entry) == 0 then return visit(c, d, kind, chunk, field) end
  if c.floor > 1 and is_swept(field) then sweep(c, kind.spills, key) end
end

-- Takes the numbers in d.seen.gone out of a bucket.
local function clean(c, d, kind, chunk, field)
  local entries, left = load(c, kind, chunk, field) or {}, {}
  for i = 1, #entries do
    if not d.seen.gone[entries[i]] then left[#left + 1] = entries[i] end
  end
  if #left < #entries then rewrite(c, kind, chunk, field, left) end
end

local function each_bucket(c, d, act)
  local count = 2 + d.bands + d.anchors
  local words = {struct.unpack(string.rep(KEY, count), d.blob, ADMISSION_SIZE + 1)}
  act(c, d, c.kinds.digest, words[1], words[2])
  if bit.band(d.flags, HAS_LINEAGE) > 0 then act(c, d, c.kinds.lineage, words[3], words[4]) end
  local kind, first_anchor = c.kinds.band, 2 * d.bands + 5
  for at = 5, 2 * count, 2 do
    if at == first_anchor then kind = c.kinds.anchor end
    act(c, d, kind, words[at], words[at + 1])
  end
  c.keys = c.keys + count
end

local function gather(c, d)
  d.seen = {counts = {}, flags = {}, gone = {}, full = 0, may_change = false}
  each_bucket(c, d, d.enters and enter or visit)
  return d.seen
end
