local function place_in(held, number)
  if #held == NUMBER_BYTES then return held == number and 1 end
  local at = string.find(held, number, 1, true)
  while at and at % NUMBER_BYTES ~= 1 do at = string.find(held, number, at + 1, true) end
  return at
end

-- Return the numbers of a bucket with one more. A full one drops the first after its heads.
local function append(c, key, held, number, hint)
  if place_in(held, number) or hint ~= NO_NUMBER and place_in(held, hint) then return nil end
  local kind, heads, cap = string.sub(key, #c.tag + 1, #c.tag + 1), HEADS, BAND_CAP
  if kind == LINEAGE_KEY then heads, cap = 0, LINEAGE_CAP end
  if kind == ANCHOR_KEY then heads, cap = math.min(ANCHOR_HEADS, c.cap - 1), c.cap end
  if #held < NUMBER_BYTES * cap then return held .. number end
  return string.sub(held, 1, NUMBER_BYTES * heads) .. string.sub(held, NUMBER_BYTES * (heads + 1) + 1) .. number
end

-- Return the numbers of a bucket without one of them.
local function take_out(_, _, held, number)
  local place = place_in(held, number)
  return place and string.sub(held, 1, place - 1) .. string.sub(held, place + NUMBER_BYTES)
end

-- Return the index of each bucket of an item that others of the call visit too.
local function shared_buckets(item, at, count)
  local shared = {}
  for _ = 1, count do
    local i, index
    i, index, at = struct.unpack(SHARED_FORMAT, item, at)
    shared[i] = index
  end
  return shared
end

local function write_bucket(key, field, numbers)
  if numbers == '' then
    redis.call('HDEL', key, field)
  else
    redis.call('HSET', key, field, stored(numbers))
  end
end

-- Change buckets, and return for each that held a number its index, their count, and the numbers. An item is
-- `ENTRY_FORMAT` and what follows it. The keys of all items follow each other. A bucket that several items visit is read
-- once, and written by `write_shared`.
local function visit(c, item, change, inserts)
  local number, hint, count, shares, at = struct.unpack(ENTRY_FORMAT, item)
  local call, sub, keys, key_at, own, parts = redis.call, string.sub, c.keys, c.key_at, stored(number), {}
  local known, is_held = {[own] = number, [stored(hint)] = hint}, false
  local buckets, shared = c.buckets, shared_buckets(item, at + FIELD_BYTES * count, shares)
  for i = 0, count - 1 do
    local key, field, index = keys[key_at + i], sub(item, at, at + FIELD_BYTES - 1), shared[i]
    local held = index and buckets[index]
    if not held then
      -- Both commands say whether the bucket is empty. The cheaper one is tried first, as the last bucket was.
      held = (is_held or not inserts) and call('HGET', key, field)
      if not held and inserts and call('HSETNX', key, field, own) == 0 then held = call('HGET', key, field) end
      is_held = held
      if held then
        held = known[held] or numbers_in(held)
      else
        held = ''
        if index then buckets[index] = inserts and number or '' end
        if c.has_over and inserts and has_to_sweep(field) then sweep_buckets(c, key) end
      end
    end
    if held ~= '' then
      parts[#parts + 1] = struct.pack(BUCKET_FORMAT, i, #held / NUMBER_BYTES)
      parts[#parts + 1] = held
      local changed = change and change(c, key, held, number, hint)
      if index then
        buckets[index] = changed or held
        if changed then c.changed[index] = {key, field} end
      elseif changed then
        write_bucket(key, field, changed)
      end
    end
    at = at + FIELD_BYTES
  end
  c.key_at = key_at + count
  return parts
end

local function write_shared(c)
  for index, place in pairs(c.changed) do write_bucket(place[1], place[2], c.buckets[index]) end
end

define('enter', true, function(c, item) return table.concat(visit(c, item, append, true)) end, write_shared)
define('peek', false, function(c, item) return table.concat(visit(c, item)) end)
define('withdraw', true, function(c, item) return #visit(c, item, take_out) end, write_shared)
