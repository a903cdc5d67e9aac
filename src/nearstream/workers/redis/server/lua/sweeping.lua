-- Buckets and the registry outlive what they lead to. Now and then, what is over is taken out of a hash that grows.

-- Return the first row of a partition whose state may not be over. FLOOR_FIELD has marks of time and last row in order, of
-- which the first one counts once its states are over.
local function floor_of(c, partition)
  c.floors = c.floors or {}
  if not c.floors[partition] then
    local marks = redis.call('HGET', c.keys[1], FLOOR_FIELD .. partition) or ''
    local time, row = struct.unpack(MARK_OF_TIME_FORMAT, marks == '' and NO_MARK or marks)
    c.floors[partition] = marks ~= '' and is_over(c, time, 1.5) and row + 1 or 0
  end
  return c.floors[partition]
end

-- Note that everything up to a row was done by now.
local function mark_time(c, partition, row)
  if c.retention == 0 then return end
  local field = FLOOR_FIELD .. partition
  local marks, size = redis.call('HGET', c.keys[1], field) or '', #NO_MARK
  if marks ~= '' and struct.unpack('>I6', marks, #marks - size + 1) + c.retention / MARKS > c.now then return end
  marks = marks .. struct.pack(MARK_OF_TIME_FORMAT, c.now, row)
  while #marks > size and is_over(c, struct.unpack('>I6', marks, size + 1), 1.5) do marks = string.sub(marks, size + 1) end
  redis.call('HSET', c.keys[1], field, marks)
  if is_over(c, struct.unpack('>I6', marks), 1.5) then redis.call('HSET', c.keys[1], 'over', 1) end
end

local function is_swept(c, number)
  local partition = number % c.partitions
  return (number - partition) / c.partitions < floor_of(c, partition)
end

-- Return the numbers of a bucket that are not over.
local function alive(c, held)
  local rest = ''
  for at = 1, #held, NUMBER_BYTES do
    local one = string.sub(held, at, at + NUMBER_BYTES - 1)
    if not is_swept(c, struct.unpack('>I5', one)) then rest = rest .. one end
  end
  return rest
end

-- One new field in about 8 has its hash swept.
local function has_to_sweep(field)
  return (string.byte(field, -1) + 5 * string.byte(field, -2)) % 8 == 0
end

local function sweep_buckets(c, key)
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local held = numbers_in(fields[i + 1])
    local rest = alive(c, held)
    if rest == '' then
      redis.call('HDEL', key, fields[i])
    elseif #rest < #held then
      redis.call('HSET', key, fields[i], stored(rest))
    end
  end
end

-- A label goes with its document, and a removal after an hour.
local function sweep_registry(c, key)
  local fields, known = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do known[fields[i]] = fields[i + 1] end
  for field, value in pairs(known) do
    local document, kind = string.sub(field, 1, DOCUMENT_BYTES), string.sub(field, DOCUMENT_BYTES + 1)
    local current = known[document]
    local is_gone = not current or is_swept(c, tonumber(current))
    if kind == '' and is_gone
      or kind == LABEL_FIELD and is_gone and is_swept(c, struct.unpack('>I5', value))
      or kind == REMOVAL_FIELD and struct.unpack('>I6', value) + REMOVAL_MS < c.now then
      redis.call('HDEL', key, field)
    end
  end
end
