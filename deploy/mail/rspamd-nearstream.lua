-- NEARSTREAM_BULK: many copies of the message arrived within the last hour. The option of the symbol says how many.
local rspamd_http = require 'rspamd_http'
local ucl = require 'ucl'

local url = 'http://127.0.0.1:9465/v1/check'
local headers = { ['nearstream-collection'] = 'default' } -- and, with a token, Authorization = 'Bearer ...'

rspamd_config:register_symbol({
  name = 'NEARSTREAM_BULK', group = 'nearstream', score = 3.0, description = 'Many copies within the last hour',
  callback = function(task)
    local function answered(failure, code, body)
      if failure or code ~= 200 then return end
      local parser = ucl.parser()
      local answer = parser:parse_text(body) and parser:get_object()
      if type(answer) == 'table' and answer.verdict == 'bulk' and tonumber(answer.score) then
        task:insert_result('NEARSTREAM_BULK', tonumber(answer.score), tostring(answer.count_1h))
      end
    end
    rspamd_http.request({ task = task, url = url, body = task:get_content(), mime_type = 'message/rfc822',
      headers = headers, timeout = 0.5, callback = answered })
  end,
})
