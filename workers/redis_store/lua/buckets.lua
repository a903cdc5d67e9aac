local function place_in(held, number)
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

-- Change buckets, and return what they held, for each that held a number its index, their count, and the numbers. An item
-- is `ENTRY_FORMAT`, then the field of each key. The keys of all items follow each other.
local function visit(c, item, change, inserts)
  local number, hint, count, at = struct.unpack(ENTRY_FORMAT, item)
  local call, sub, keys, key_at, own, parts, often = redis.call, string.sub, c.keys, c.key_at, stored(number), {}, c.often or 0
  for i = 0, count - 1 do
    local key, field = keys[key_at + i], sub(item, at, at + FIELD_BYTES - 1)
    -- Both commands say whether the bucket is empty. Which one is cheaper depends on how often buckets are.
    local held = (often > 0 or not inserts) and call('HGET', key, field)
    if held or inserts and call('HSETNX', key, field, own) == 0 then
      held, often = numbers_in(held or call('HGET', key, field)), often + 1
      local changed = change and change(c, key, held, number, hint)
      if changed == '' then call('HDEL', key, field) end
      if changed and changed ~= '' then call('HSET', key, field, stored(changed)) end
      parts[#parts + 1] = struct.pack(BUCKET_FORMAT, i, #held / NUMBER_BYTES) .. held
    else
      often = often - 1
      if inserts and has_to_sweep(c, field) then sweep_buckets(c, key) end
    end
    at = at + FIELD_BYTES
  end
  c.key_at, c.often = key_at + count, often
  return parts
end

define('enter', true, function(c, item) return table.concat(visit(c, item, append, true)) end)
define('peek', false, function(c, item) return table.concat(visit(c, item)) end)
define('withdraw', true, function(c, item) return #visit(c, item, take_out) end)
