import { connect } from 'pushlab-client'

const connection = connect('http://127.0.0.1:8000', { channels: ['news'] })
connection.addEventListener('message', ({ data }) => console.log(data))
