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

local function write_bucket(key, field, numbers)
  if numbers == '' then
    redis.call('HDEL', key, field)
  else
    redis.call('HSET', key, field, stored(numbers))
  end
end

-- Change buckets, and return for each that held a number its index, their count, and the numbers. An item is
-- `ENTRY_FORMAT`, then the fields of its buckets. The keys of all items follow each other.
local function visit(c, item, change, inserts)
  local number, hint, count, at = struct.unpack(ENTRY_FORMAT, item)
  local call, sub, keys, key_at, own, parts = redis.call, string.sub, c.keys, c.key_at, stored(number), {}
  local known, is_held = {[own] = number, [stored(hint)] = hint}, false
  for i = 0, count - 1 do
    local key, field = keys[key_at + i], sub(item, at, at + FIELD_BYTES - 1)
    -- Both commands say whether the bucket is empty. The cheaper one is tried first, as the last bucket was.
    local held = (is_held or not inserts) and call('HGET', key, field)
    if not held and inserts and call('HSETNX', key, field, own) == 0 then held = call('HGET', key, field) end
    is_held = held
    if held then
      held = known[held] or numbers_in(held)
      parts[#parts + 1] = struct.pack(BUCKET_FORMAT, i, #held / NUMBER_BYTES)
      parts[#parts + 1] = held
      local changed = change and change(c, key, held, number, hint)
      if changed then write_bucket(key, field, changed) end
    elseif c.has_over and inserts and has_to_sweep(field) then
      sweep_buckets(c, key)
    end
    at = at + FIELD_BYTES
  end
  c.key_at = key_at + count
  return parts
end

define('enter', true, function(c, item) return table.concat(visit(c, item, append, true)) end)
define('peek', false, function(c, item) return table.concat(visit(c, item)) end)
define('withdraw', true, function(c, item) return #visit(c, item, take_out) end)
