import faye from 'faye'

const client = new faye.Client('http://127.0.0.1:8000/faye')
client.subscribe('/news', (data) => console.log(data))
